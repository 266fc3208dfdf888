"""Man pages: one for each verb, which man shows without a warning and with all that `--help` says."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.app import VERBS, app
from assay.cli.render.command_tree import CommandHelp, read_commands
from assay.cli.render.man_pages import describe_command, write_man_pages

needs_groff = pytest.mark.skipif(not shutil.which("groff"), reason="no groff here (Debian: groff-base)")


def show(*pages: Path) -> tuple[str, str]:
    """Return what man shows of the pages, each run of white space as a blank, and its warnings."""
    command = ["groff", "-k", "-man", "-Tutf8", "-P-cbou", "-ww", "-rHY=0"]
    done = subprocess.run([*command, *map(str, pages)], capture_output=True, text=True, check=True)
    return " ".join(done.stdout.split()), done.stderr


def list_texts(command: CommandHelp) -> list[str]:
    """Return all that the help says of a command and those below it."""
    below = [text for one in command.commands for text in list_texts(one)]
    return [*command.paragraphs, *(text for option in command.options for text in option), *below]


def test_every_verb_has_a_page(tmp_path: Path) -> None:
    answer = CliRunner().invoke(app, ["man", str(tmp_path / "man")])

    assert answer.exit_code == 0, answer.output
    names = {path.name for path in (tmp_path / "man" / "man1").iterdir()}
    assert names == {"assay.1", *(f"assay-{verb}.1" for verb in VERBS)}


@needs_groff
def test_man_shows_all_that_the_help_says_without_a_warning(tmp_path: Path) -> None:
    shown, warnings = show(*write_man_pages(tmp_path))

    assert warnings == ""
    texts = [text for command in read_commands() for text in list_texts(command)]
    assert [text for text in texts if " ".join(text.split()) not in shown] == []


@needs_groff
def test_words_that_man_would_take_as_orders_are_shown(tmp_path: Path) -> None:
    command = CommandHelp("assay do", "assay do", (".assay is kept", r"'C:\n' --now"), (), ())
    (tmp_path / "do.1").write_text("\n".join([".TH DO 1", *describe_command(command)]) + "\n")

    assert r".assay is kept 'C:\n' --now" in show(tmp_path / "do.1")[0]
