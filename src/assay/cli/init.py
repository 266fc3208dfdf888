"""`assay init`: a fleet repository of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A folder that is empty or not there yet.")]

NEXT = """\
{folder} is a fleet repository now: {nodes} nodes to put your own in place of, and everything that runs on them.
Next:
  cd {folder}
  assay check
  git add --all && git commit --message "Our fleet"
README.md there goes through the first hour."""


@app.command()
def init(folder: Folder) -> None:
    """Make a fleet repository of one's own, which `assay check` accepts and whose suites run against the lab."""
    from assay.fleet.load import load_fleet
    from assay.starter.make import make

    make(folder)
    typer.echo(NEXT.format(folder=folder, nodes=len(load_fleet(folder).nodes)))
