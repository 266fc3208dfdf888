"""The reference of all commands in `docs/commands.md`. `python -m assay.cli.render.command_reference` prints it."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperGroup

from assay.cli.app import VERBS, app

INTRODUCTION = """\
# Commands

This page is generated from the commands' own help. The guides explain how to use the commands:
[plans](plans.md), [evidence](evidence.md), [validation](validation.md), [fabric](fabric.md),
[collectives](collectives.md), [faults](faults.md), [lifecycle](lifecycle.md), [reconcile](reconcile.md),
[explain](explain.md), [replay](replay.md), [ledger](ledger.md), [people](people.md), [the lab](lab.md),
[agent](agent.md), [Slurm](slurm.md), [Kubernetes](kubernetes.md).

- Exit codes: **0** done, nothing wrong; **1** done, but something is wrong with the fleet or its specs; **2** not done
  (wrong usage, no answer, or an internal error).
- `--format json` prints one document on stdout and nothing else there. Progress and logs go to stderr.
- An error says what happened, where, and what to do.
- `--fleet DIR`, or `$ASSAY_FLEET`, names the fleet repository. The default is the current folder."""
LINE_WIDTH = 120
COMMON_OPTIONS = ("--help", "--fleet")
"""Options that only the introduction explains."""


def format_command_reference() -> str:
    """Return the page: an index of the verbs, then each verb with its arguments and options."""
    root = typer.main.get_group(app)
    context = typer.Context(root, info_name="assay")
    index = [f"| [`assay {verb}`](#assay-{verb}) | {known.help} |" for verb, known in VERBS.items()]
    sections = [
        "\n".join(_describe_command(command, f"assay {verb}", context))
        for verb in VERBS
        if (command := root.get_command(context, verb))
    ]
    return "\n\n".join([INTRODUCTION, "\n".join(["| command | does |", "|---|---|", *index]), *sections]) + "\n"


def _describe_command(command: Any, name: str, parent: typer.Context) -> Iterator[str]:
    """Describe one command and those below it. Typer's own copy of click has no public name for its type."""
    context = typer.Context(command, info_name=name, parent=parent)
    level = "##" if name.count(" ") == 1 else "###"
    yield f"{level} {name}"
    yield ""
    yield f"`{' '.join([name, *_usage_pieces(command, context)])}`"
    for paragraph in (command.help or "").split("\n\n"):
        if paragraph:
            yield ""
            yield textwrap.fill(paragraph, LINE_WIDTH, break_long_words=False, break_on_hyphens=False)
    if rows := list(_describe_options(command, context)):
        yield from ("", "| option | meaning |", "|---|---|", *rows)
    if isinstance(command, TyperGroup):
        for title in command.list_commands(context):
            if found := command.get_command(context, title):
                yield ""
                yield from _describe_command(found, f"{name} {title}", context)


def _usage_pieces(command: Any, context: typer.Context) -> list[str]:
    pieces = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    return [*pieces, "[OPTIONS]"] if list(_describe_options(command, context)) else pieces


def _describe_options(command: Any, context: typer.Context) -> Iterator[str]:
    """Return a table row for each argument and option of the command's own, as its `--help` describes it."""
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record and not set(parameter.opts) & set(COMMON_OPTIONS):
            title, text = (" ".join(part.split()).replace("|", "\\|") for part in record)
            yield f"| `{title}` | {text} |"


if __name__ == "__main__":
    sys.stdout.write(format_command_reference())
