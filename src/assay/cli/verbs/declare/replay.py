"""`assay replay --policy FILE --events FILE`: what a policy would have done with a history of faults, and its costs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.context_line import format_answer
from assay.cli.options import OptionalFleetDir, OutputFormat
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from assay.cli.replay_inputs import ReplayInputs

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
    jobs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The jobs that ran: one JSON object per line. Default: jobs of the size in specs/costs.",
            show_default=False,
        ),
    ] = None,
    sweep: Annotated[
        str,
        typer.Option(
            metavar="PATH=A..B[:STEP]",
            help="Try the values A to B of one number of the policy, and compare their costs.",
            show_default=False,
        ),
    ] = "",
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --sweep: draw the curve.", show_default=False)
    ] = None,
    fleet: OptionalFleetDir = None,
    format: OutputFormat = "text",  # noqa: A002 — the option is called --format
) -> None:
    """Replay a history of faults under a policy: its decisions, and what they cost in time, jobs and people.

    Exit codes: 0 replayed; 2 the policy, the history or the jobs cannot be read, or the sweep names no number.
    """
    from assay.cli.replay_inputs import load_replay_inputs

    _check_options(sweep, svg, against)
    inputs = load_replay_inputs(fleet, events, jobs)
    if sweep:
        _sweep(inputs, policy, sweep, svg, format)
        return
    from assay.cli.render.replay.replay_text import format_replay_text
    from assay.trends.replay.replay_result import format_replay_result

    rules = inputs.load_rules(policy)
    result = inputs.run(rules)
    other = inputs.run(inputs.load_rules(against)) if against else None
    document = format_replay_result(inputs.history, rules, inputs.costs, result, other)
    _print(document, format, "" if format == "json" else "\n".join(format_replay_text(document)))


def _check_options(sweep: str, svg: Path | None, against: Path | None) -> None:
    if svg and not sweep:
        raise AssayError("there is no curve to draw", where="--svg", fix="add --sweep PATH=A..B")
    if sweep and against:
        raise AssayError("a sweep compares values of one policy", where="--against", fix="leave one of the two out")


def _sweep(inputs: ReplayInputs, policy: Path, text: str, svg: Path | None, form: str) -> None:
    """Replay under each value, print the table, and draw the curve if asked for."""
    from assay.cli.render.replay.sweep_chart import draw_sweep_svg
    from assay.cli.render.replay.sweep_text import format_sweep_text
    from assay.trends.replay.policy_sweep import parse_sweep, replace_policy_value, sweep_policy
    from assay.trends.replay.replay_result import format_sweep_result

    sweep, rules = parse_sweep(text), inputs.load_rules(policy)
    policies = {value: replace_policy_value(rules.policy, sweep.path, value) for value in sweep.values}
    points, until = sweep_policy(sweep.values, lambda value: inputs.run(rules, policies[value]).tally, inputs.costs)
    document = format_sweep_result(inputs.history, rules, inputs.costs, sweep, points, until)
    if svg:
        _write(svg, draw_sweep_svg(document))
    _print(document, form, "" if form == "json" else "\n".join(format_sweep_text(document)))


def _print(document: Mapping[str, Any], form: str, text: str) -> None:
    typer.echo(format_answer(document, indent=1, ensure_ascii=False) if form == "json" else text)


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text)
    except OSError as error:
        raise AssayError(f"cannot be written: {error.strerror}", where=str(file), fix="name another file") from None
