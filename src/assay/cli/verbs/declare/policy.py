"""`assay policy graph`: a lifecycle policy as a drawing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from assay.cli.options import FleetDir
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from assay.model.fleet import Fleet
    from assay.model.specs.lifecycle_policy import LifecyclePolicy

policy_app = typer.Typer(add_completion=False, no_args_is_help=True)


@policy_app.callback()
def _policy() -> None:
    """Draw lifecycle policies."""


@policy_app.command()
def graph(
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The policy's file. Default: the fleet's policy.")
    ] = None,
    fleet: FleetDir = Path(),
    format_: Annotated[
        Literal["svg", "mermaid"],
        typer.Option("--format", help="svg for a browser, mermaid for a Markdown page.", show_default=False),
    ] = "svg",
) -> None:
    """Draw the states of a policy and the transitions between them, on stdout.

    Exit codes: 0 drawn; 2 there is no such policy, or it cannot be read.
    """
    from assay.fleet.fleet_loader import load_fleet
    from assay.fleet.policy_file import read_policy
    from assay.lifecycle.policy_graph import format_mermaid
    from assay.lifecycle.policy_graph_svg import draw_policy_svg

    chosen = read_policy(policy, fleet).policy if policy is not None else find_only_policy(load_fleet(fleet))
    typer.echo(draw_policy_svg(chosen).rstrip() if format_ == "svg" else format_mermaid(chosen))


def find_only_policy(fleet: Fleet) -> LifecyclePolicy:
    """Return the fleet's lifecycle policy. Raises AssayError unless there is exactly one."""
    try:
        return fleet.policy
    except AssayError as error:
        fix = "keep one; `assay policy graph --policy FILE` draws any"
        raise AssayError(error.what, where=error.where, fix=fix) from None
