"""All commands with their own help, as data: what the reference is made of."""

from __future__ import annotations

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
