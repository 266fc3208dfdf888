"""`assay context`: which home the commands in this clone work on, the fleet's or the lab's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from assay.cli.context_line import describe_context
from assay.cli.options import FleetDir, argument, option
from assay.declare.home import CONTEXT_VARIABLE, choose_context, find_home, require_repository


def context(
    chosen: Annotated[
        Literal["fleet", "lab"] | None, argument("[fleet|lab]", "What to choose. Default: show what is chosen.")
    ] = None,
    fleet: FleetDir = Path(),
    short: Annotated[bool, option("--short", "Print the one word, for a shell's prompt.")] = False,
) -> None:
    """Show or choose what all commands in this clone work on: the real fleet, or the virtual one of its lab.

    The two have homes of their own, `.assay` and `.assay-lab`, and share no ledger, evidence, ticket or key.
    `--context` chooses for one command, $ASSAY_CONTEXT for a shell or a service.
    """
    root = fleet.resolve()
    require_repository(root)
    if chosen:
        choose_context(root, chosen)
    home = find_home(root)
    typer.echo(home.context if short else describe_context(home))
    if chosen and chosen != home.context:
        typer.echo(f"${CONTEXT_VARIABLE} says {home.context}, and goes before the choice of the clone", err=True)
