"""`assay schema`: the JSON Schemas of what commands print with `--format json`."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.cli.name_check import suggest_names
from assay.cli.verbs.registry import ANSWERS
from assay.model.errors import AssayError

schema_app = typer.Typer(add_completion=False)


def complete_commands(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the words that come next in commands which begin as the words before."""
    before = ctx.params.get("words") or []
    words = [command.split() for command in ANSWERS]
    fitting = {one[len(before)] for one in words if one[: len(before)] == [*before] and len(one) > len(before)}
    return sorted(word for word in fitting if word.startswith(incomplete))


@schema_app.command()
def schema(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND",
            autocompletion=complete_commands,
            help="A command as you would give it, without assay: status, or ledger verify.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Print the JSON Schema (draft 2020-12) of what a command prints with --format json.

    The schema describes each field: its unit, and what null means. Without COMMAND, list the commands that have one,
    with what their answers hold. The documentation has the same, under "Answers in JSON".

    Exit codes: 0 printed; 2 there is no schema of this command.
    """
    from assay.cli.verbs.answer_schemas import format_answer_schema, list_answers

    command = " ".join(words or ()).removeprefix("assay ")
    if not command:
        typer.echo("\n".join(list_answers()))
        return
    if command not in ANSWERS:
        hint = suggest_names(command, set(ANSWERS), "`assay schema` lists the commands that have one")
        raise AssayError(f"there is no schema of `assay {command}`", fix=hint)
    typer.echo(format_answer_schema(command), nl=False)
