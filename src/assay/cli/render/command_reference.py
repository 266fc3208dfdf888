"""The reference of all commands in `docs/commands.md`. `python -m assay.cli.render.command_reference` prints it."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator

from assay.cli.app import VERBS
from assay.cli.render.command_tree import EXIT_CODES, CommandHelp, read_commands

_EXIT_CODES = "\n".join(f"- Exit code **{code}**: {text}" for code, text in EXIT_CODES)
INTRODUCTION = f"""\
# Commands

This page is generated from the commands' own help. The guides explain how to use the commands:
[plans](plans.md), [evidence](evidence.md), [validation](validation.md), [fabric](fabric.md),
[collectives](collectives.md), [faults](faults.md), [lifecycle](lifecycle.md), [reconcile](reconcile.md),
[explain](explain.md), [replay](replay.md), [ledger](ledger.md), [people](people.md), [the lab](lab.md),
[agent](agent.md), [Slurm](slurm.md), [Kubernetes](kubernetes.md).

{_EXIT_CODES}
- `--format json` prints one document on stdout and nothing else there. Progress and logs go to stderr.
- `assay schema COMMAND` prints the JSON Schema of that document.
- An error says what happened, where, and what to do.
- `--fleet DIR`, or `$ASSAY_FLEET`, names the fleet repository. The default is the current folder."""
LINE_WIDTH = 120


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


if __name__ == "__main__":
    sys.stdout.write(format_command_reference())
