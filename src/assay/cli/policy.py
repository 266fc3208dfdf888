"""`assay policy graph`: the states of a policy, drawn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from assay.model.errors import Trouble

if TYPE_CHECKING:
    from assay.model.policy import LifecyclePolicy

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Draw policies.")
Where = Annotated[Path, typer.Option("--fleet", help="The fleet repository.", envvar="ASSAY_FLEET")]


@app.callback()
def _policy() -> None:
    """Draw policies."""


@app.command()
def graph(
    policy: Annotated[Path | None, typer.Option(metavar="FILE", help="The policy; without it the fleet's.")] = None,
    fleet: Where = Path(),
    format_: Annotated[
        Literal["svg", "mermaid"], typer.Option("--format", help="svg for people, mermaid for a page of Markdown.")
    ] = "svg",
) -> None:
    """Draw the states of a policy and what leads from one to the other, on stdout.

    Exit code 0: drawn; 2: there is no such policy, or it cannot be read.
    """
    from assay.lifecycle.drawing import svg
    from assay.lifecycle.graph import mermaid

    chosen = _read(policy, fleet)
    typer.echo(svg(chosen).rstrip() if format_ == "svg" else mermaid(chosen))


def _read(file: Path | None, fleet: Path) -> LifecyclePolicy:
    """Return the policy of that file, else the fleet's one. Raises Trouble."""
    from assay.fleet.load import load_fleet
    from assay.fleet.policy_file import read_policy

    if file is not None:
        return read_policy(file, fleet).policy
    policies = load_fleet(fleet).policies
    if len(policies) != 1:
        raise Trouble(
            f"the fleet has {len(policies)} policies",
            where=str(fleet / "specs"),
            fix="name the file of one: assay policy graph --policy FILE",
        )
    return next(iter(policies.values()))
