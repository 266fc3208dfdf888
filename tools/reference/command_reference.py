"""The reference of all commands, docs/commands.md, from their own help."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup

from assay.cli.app import VERBS, app

COMMON_OPTIONS = ("--help", "--fleet")
"""Options that only the introduction explains."""
EXIT_CODES = (
    ("0", "Done, and nothing is wrong."),
    ("1", "Done, but something is wrong with the fleet or its specs."),
    ("2", "Not done: wrong usage, no answer, or an internal error."),
)
_EXIT_CODES = "\n".join(f"- Exit code **{code}**: {text}" for code, text in EXIT_CODES)
INTRODUCTION = f"""\
# Commands

This page is generated from the commands' own help. The guides explain how to use the commands:
[plans](plans.md), [evidence and checks](validation.md), [fabric](fabric.md), [reports](reports.md),
[collectives](collectives.md), [faults](faults.md), [lifecycle](lifecycle.md), [reconcile](reconcile.md),
[explain](explain.md), [ledger](ledger.md), [people](people.md), [the lab](lab.md),
[agent](agent.md), [Slurm](slurm.md), [Kubernetes](kubernetes.md).

{_EXIT_CODES}
- `--format json` prints one document on stdout and nothing else there. Progress and logs go to stderr.
- `assay schema COMMAND` prints the JSON Schema of that document.
- An error says what happened, where, and what to do.
- `--fleet DIR`, or `$ASSAY_FLEET`, names the fleet repository. The default is the current folder."""
LINE_WIDTH = 120


class CommandHelp(NamedTuple):
    """What `--help` says about a command: its `name` (`assay fabric draw`), usage, paragraphs and own options.

    `options` are arguments and options, each with its meaning. `commands` are those below it.
    """

    name: str
    usage: str
    paragraphs: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    commands: tuple[CommandHelp, ...]


def read_commands() -> Iterator[CommandHelp]:
    """Yield every verb, in the order of `VERBS`."""
    root = typer.main.get_group(app)
    context = typer.Context(root, info_name="assay")
    for verb in VERBS:
        yield _read_command(root.get_command(context, verb), f"assay {verb}", context)


def _read_command(command: Any, name: str, parent: typer.Context) -> CommandHelp:
    """Read one command and those below it. Typer's own copy of click has no public name for its type."""
    context = typer.Context(command, info_name=name, parent=parent)
    options = tuple(_read_options(command, context))
    words = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    below = command.list_commands(context) if isinstance(command, TyperGroup) else ()
    return CommandHelp(
        name,
        " ".join([name, *words, *(["[OPTIONS]"] if options else [])]),
        tuple(filter(None, (command.help or "").split("\n\n"))),
        options,
        tuple(_read_command(command.get_command(context, title), f"{name} {title}", context) for title in below),
    )


def _read_options(command: Any, context: typer.Context) -> Iterator[tuple[str, str]]:
    """Yield each argument and option of the command's own, as its `--help` describes it."""
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record and not set(parameter.opts) & set(COMMON_OPTIONS):
            title, text = (" ".join(part.split()) for part in record)
            yield title, text


def format_command_reference() -> str:
    """Return the page: an index of the verbs, then each verb with its arguments and options."""
    index = [f"| [`assay {verb}`](#assay-{verb}) | {known.help} |" for verb, known in VERBS.items()]
    sections = ["\n".join(_describe_command(command)) for command in read_commands()]
    return "\n\n".join([INTRODUCTION, "\n".join(["| command | does |", "|---|---|", *index]), *sections]) + "\n"


def _describe_command(command: CommandHelp, level: str = "##") -> Iterator[str]:
    """Yield the lines about one command and those below it."""
    yield from (f"{level} {command.name}", "", f"`{command.usage}`")
    for paragraph in command.paragraphs:
        yield ""
        yield textwrap.fill(paragraph, LINE_WIDTH, break_long_words=False, break_on_hyphens=False)
    if command.options:
        yield from ("", "| option | meaning |", "|---|---|")
    for title, text in command.options:
        yield f"| `{_escape_cell(title)}` | {_escape_cell(text)} |"
    for below in command.commands:
        yield ""
        yield from _describe_command(below, "###")


def _escape_cell(text: str) -> str:
    return text.replace("|", "\\|")
