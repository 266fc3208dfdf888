"""`assay man`: the man pages of all commands."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

man_app = typer.Typer(add_completion=False)

DEFAULT_FOLDER = Path("~/.local/share/man")


@man_app.command()
def man(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A folder of man pages.", show_default=False)
    ] = DEFAULT_FOLDER,
) -> None:
    """Write the man pages of all commands, of this version of assay, into a folder.

    Without a folder they go to ~/.local/share/man, which man searches where ~/.local/bin is in PATH. Then `man assay`
    shows the commands, and `man assay-check` one of them.

    Exit codes: 0 written; 2 the folder cannot be written.
    """
    from assay.cli.render.man_pages import write_man_pages
    from assay.model.texts.printable_text import escape_line

    home = folder.expanduser()
    files = write_man_pages(home)
    typer.echo(f"{len(files)} pages in {escape_line(str(files[0].parent))}")
    typer.echo(f"  → man --manpath={escape_line(shlex.quote(str(home)))} assay")
