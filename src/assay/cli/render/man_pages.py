"""The man pages of all commands, made of the commands' own help: one for assay, and one for each verb."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from assay.cli.app import VERBS
from assay.cli.render.command_tree import EXIT_CODES, CommandHelp, read_commands

SECTION = "man1"
"""The folder of pages on commands, below a folder of man pages."""
COMMON_TEXT = (
    "--fleet DIR, or the variable ASSAY_FLEET, names the fleet repository. The default is the current folder.",
    "--format json prints one document on stdout and nothing else there. Progress and logs go to stderr.",
)


class ManPage(NamedTuple):
    """A page: its name without the section (`assay-check`), and its text in the language of man(7)."""

    name: str
    text: str


def write_man_pages(folder: Path) -> list[Path]:
    """Write all pages below a folder of man pages, and return their files."""
    (folder / SECTION).mkdir(parents=True, exist_ok=True)
    files = []
    for page in make_man_pages():
        files.append(folder / SECTION / f"{page.name}.1")
        files[-1].write_text(page.text, encoding="utf-8")
    return files


def make_man_pages() -> Iterator[ManPage]:
    """Yield the page of assay, then those of the verbs."""
    yield ManPage("assay", _format_page("assay", "run a GPU fleet by evidence", _describe_assay()))
    for command, known in zip(read_commands(), VERBS.values(), strict=True):
        name = command.name.replace(" ", "-")
        yield ManPage(name, _format_page(name, known.help.rstrip("."), _describe_verb(command)))


def _format_page(name: str, does: str, lines: Iterable[str]) -> str:
    title = f'.TH "{name.upper()}" "1" "" "assay {version("assay-fleet")}" "User Commands"'
    return "\n".join([title, ".SH NAME", f"{_escape(name)} \\- {_escape(does)}", *lines]) + "\n"


def _describe_assay() -> Iterator[str]:
    yield from (".SH SYNOPSIS", ".B assay", r"\fICOMMAND\fR [\fIOPTIONS\fR] [\fIARGUMENTS\fR]", ".SH COMMANDS")
    yield from _list_terms((f"assay-{verb}(1)", known.help) for verb, known in VERBS.items())
    yield ".SH OPTIONS"
    yield from _list_paragraphs(COMMON_TEXT)
    yield ".SH EXIT STATUS"
    yield from _list_terms(EXIT_CODES)
    yield from (".SH FILES", ".I .assay/", "in a fleet repository: its ledger and stored evidence.")


def _describe_verb(command: CommandHelp) -> Iterator[str]:
    yield from (".SH SYNOPSIS", *_list_usages(command), ".SH DESCRIPTION")
    yield from describe_command(command)
    for below in command.commands:
        yield f'.SH "{_escape(below.name.upper())}"'
        yield from describe_command(below)
    yield from (".SH SEE ALSO", r"\fBassay\fR(1)")


def _list_usages(command: CommandHelp) -> Iterator[str]:
    """Yield the usage of a command without commands of its own, or of each of these."""
    if not command.commands:
        yield from (_escape(command.usage), ".br")
    for below in command.commands:
        yield from _list_usages(below)


def describe_command(command: CommandHelp) -> Iterator[str]:
    """Yield the lines of man(7) about one command, without those below it."""
    yield from _list_paragraphs(command.paragraphs)
    yield from _list_terms(command.options)


def _list_paragraphs(paragraphs: Iterable[str]) -> Iterator[str]:
    for paragraph in paragraphs:
        yield from (".PP", _escape(paragraph))


def _list_terms(terms: Iterable[tuple[str, str]]) -> Iterator[str]:
    for term, text in terms:
        yield from (".TP", rf"\fB{_escape(term)}\fR", _escape(text))


def _escape(text: str) -> str:
    """Return the text so that man shows it as it is: its backslashes and hyphens, and a dot that begins it."""
    escaped = text.replace("\\", r"\(rs").replace("-", r"\-")
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped
