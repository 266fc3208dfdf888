"""`assay replay --policy FILE --events FILE`: what a policy would have done with a history of faults, and its costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.context_line import format_answer
from assay.cli.options import OptionalFleetDir, OutputFormat

replay_app = typer.Typer(add_completion=False)


@replay_app.command()
def replay(
    policy: Annotated[Path, typer.Option(metavar="FILE", help="The policy to try.", show_default=False)],
    events: Annotated[
        Path, typer.Option(metavar="FILE", help="The history: one JSON object per line.", show_default=False)
    ],
    against: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Another policy, to compare with.", show_default=False)
    ] = None,
    fleet: OptionalFleetDir = None,
    format: OutputFormat = "text",  # noqa: A002 — the option is called --format
) -> None:
    """Replay a history of faults under a policy: its decisions, and what they cost in time, jobs and people.

    Exit codes: 0 replayed; 2 the policy or the history cannot be read.
    """
    from assay.cli.verbs.replay_inputs import load_replay_inputs
    from assay.cli.verbs.replay_text import format_replay_text
    from assay.decide.replay.replay_result import format_replay_result

    inputs = load_replay_inputs(fleet, events)
    rules = inputs.load_rules(policy)
    result = inputs.run(rules)
    other = inputs.run(inputs.load_rules(against)) if against else None
    document = format_replay_result(inputs.history, rules, inputs.costs, result, other)
    if format == "json":
        typer.echo(format_answer(document, indent=1, ensure_ascii=False))
    else:
        typer.echo("\n".join(format_replay_text(document)))
