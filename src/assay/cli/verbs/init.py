"""`assay init`: creates a fleet repository."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from assay.model.text.safe_text import escape_line

init_app = typer.Typer(add_completion=False)

NEXT_STEPS = """\
{folder} is now a fleet repository with {nodes} example nodes. Replace them by your own.
Next:
  cd {folder}
  assay check
  git add --all && git commit --message "Our fleet"
Commands there work on its lab (assay lab up) until you choose the real machines: assay context fleet.
README.md there is a guide for the first hour."""


@init_app.command()
def init(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="An empty folder, or one that does not exist yet.", show_default=False)
    ],
    ci: Annotated[
        Literal["github", "gitlab", "both"], typer.Option(help="Whose workflows to add: see docs/ci.md.")
    ] = "github",
) -> None:
    """Create a fleet repository with an example inventory, specs, suites and playbooks.

    `assay check` accepts it as it is, and its suites run against the lab, which is chosen in it.
    """
    from assay.declare.home import choose_context
    from assay.declare.loader import load_fleet
    from assay.declare.starter.new_repository import create_repository

    create_repository(folder, ci)
    choose_context(folder, "lab")
    typer.echo(NEXT_STEPS.format(folder=escape_line(str(folder)), nodes=len(load_fleet(folder).nodes)))
