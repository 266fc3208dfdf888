"""What all runs said: of a node's checks, of its measurements, of the pools."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING

import typer

from assay.model.errors import AssayError
from assay.model.text_lists import format_count
from assay.model.timestamps import format_duration, parse_time
from assay.model.traced_values import format_value
from assay.results.history.flaky_and_noise import FlakyCheck, MeasurementNoise, query_flaky_checks, query_noise
from assay.results.history.parquet_files import history_folder
from assay.results.history.queries import (
    HistoryExtent,
    OutcomeHistory,
    OutcomeQuery,
    PoolDayRate,
    VerdictTurn,
    query_extent,
    query_pool_rates,
    query_turns,
)
from assay.results.outcome_lines import SUBJECT_WIDTH, format_minute, shorten_check, verdict_word

if TYPE_CHECKING:
    from assay.cli.workspace import Workspace
    from assay.model.outcome import CheckVerdict

COLOURS = {"fail": "red", "error": "yellow", "pass": "green"}
MAX_FLAPPING_SHOWN = 20


def show_node_outcomes(desk: Workspace, node: str, days: int, check: str, form: str) -> None:
    """Show when which check of a node failed and recovered, and what flaps."""
    of = OutcomeQuery(nodes=[node], fits=check)
    with _open_history(desk) as history:
        sum_, found, flaps = (
            query_extent(history, of, days=days),
            query_turns(history, of, days=days),
            query_flaky_checks(history, of, days=days),
        )
    if form == "json":
        _print(
            {
                "node": node,
                "days": days,
                **asdict(sum_),
                "turns": [*map(asdict, found)],
                "flapping": [*map(asdict, flaps)],
            }
        )
        return
    if not sum_.runs:
        _report_nothing_judged(desk, node, days, check)
        return
    _print_block(_format_turns(found))
    _print_block(_format_flapping(flaps))
    typer.echo(f"{node}: {_format_counts(sum_)}; {_count_not_passing(found)}")


def show_node_measurements(desk: Workspace, node: str, days: int, check: str, form: str) -> None:
    """Show the newest measurements of a node, each beside what it was before."""
    if not node:
        raise AssayError("no node is named", fix="assay history NODE --measurements")
    with _open_history(desk) as history:
        found = query_noise(history, OutcomeQuery(nodes=[node], fits=check), days=days)
    if form == "json":
        _print({"node": node, "days": days, "measurements": [{**asdict(one), "times": one.times} for one in found]})
        return
    if not found:
        _report_nothing_judged(desk, node, days, check)
    for one in found:
        typer.secho(_format_measurement(one), fg="yellow" if one.is_far else None)


def show_pool_rates(desk: Workspace, node: str, days: int, check: str, form: str) -> None:  # noqa: ARG001 — no node is named
    """Show how every pool did, day by day, and what flaps most."""
    of = OutcomeQuery(fits=check)
    with _open_history(desk) as history:
        found, flaps = query_pool_rates(history, of, days=days), query_flaky_checks(history, of, days=days)
    if form == "json":
        plain = [{**asdict(one), "day": str(one.day), "success": one.success} for one in found]
        _print({"days": days, "pools": plain, "flapping": [*map(asdict, flaps)]})
        return
    if not found:
        typer.echo(f"nothing was judged in the last {format_count(days, 'day')}{_check_suffix(check)}")
    _print_block(map(_format_rate, found))
    _print_block(_format_flapping(flaps))


def _open_history(desk: Workspace) -> OutcomeHistory:
    return OutcomeHistory(history_folder(desk.reports_dir), desk.clock.now())


def _print(plain: dict[str, object]) -> None:
    typer.echo(json.dumps(plain, indent=1, ensure_ascii=False))


def _print_block(lines: Iterator[str]) -> None:
    """Print lines, and an empty one below if there were any."""
    said = "\n".join(lines)
    if said:
        typer.echo(f"{said}\n")


def _report_nothing_judged(desk: Workspace, node: str, days: int, check: str) -> None:
    """Say that nothing is known. Raises Trouble for a node that does not exist."""
    if node not in desk.fleet.nodes:
        near = get_close_matches(node, desk.fleet.nodes, n=3, cutoff=0.5)
        raise AssayError(f"no node is called {node}", fix=f"did you mean {', '.join(sorted(near))}?" if near else "")
    typer.echo(f"nothing was judged on {node} in the last {format_count(days, 'day')}{_check_suffix(check)}")


def _check_suffix(check: str) -> str:
    return f" by checks such as {check}" if check else ""


def _format_turns(found: Sequence[VerdictTurn]) -> Iterator[str]:
    """Yield a line for each turn; what turned alike in one run is one line."""
    alike: dict[tuple[str, str, str], list[VerdictTurn]] = defaultdict(list)
    for turn in found:
        alike[turn.run, verdict_word(turn.verdict, turn.known, observed=turn.observed), turn.reason].append(turn)
    since: dict[tuple[str, str], str] = {}
    for (_, word, reason), same in alike.items():
        first = same[0]
        began = since.get((first.check, first.subject))
        why = (
            f"after {format_duration(parse_time(first.at) - parse_time(began))}"
            if began and first.verdict == "pass"
            else reason
        )
        head = typer.style(f"{word:<5}", fg=COLOURS.get(word))
        yield f"{typer.style(format_minute(first.at), dim=True)}  {head} {_format_subject_and_check(same)}  {why}".rstrip()
        since |= {(turn.check, turn.subject): turn.at for turn in same}


def _format_subject_and_check(same: Sequence[VerdictTurn | FlakyCheck]) -> str:
    """Return where and by which check; of several, how many there are."""
    first, checks = same[0], {one.check for one in same}
    if len(same) == 1:
        return f"{first.subject:<{SUBJECT_WIDTH}} {shorten_check(first.check)}"
    place = "/".join(first.subject.split("/")[:2])
    check = shorten_check(first.check) if len(checks) == 1 else format_count(len(checks), "check")
    return f"{place:<{SUBJECT_WIDTH}} {check}, {len(same)} outcomes"


def _count_not_passing(found: Sequence[VerdictTurn]) -> str:
    """Return how many checks do not pass now."""
    last = Counter({(turn.check, turn.subject): turn.verdict for turn in found}.values())
    left = [f"{last[verdict]} {word}" for verdict, word in VERDICT_WORDS.items() if last[verdict]]
    return f"at last {', '.join(left)}" if left else "at last nothing failed"


VERDICT_WORDS: dict[CheckVerdict, str] = {"fail": "failed", "error": "could not be judged"}


def _format_counts(one: HistoryExtent) -> str:
    span = (
        f"from {format_minute(one.first)} to {format_minute(one.last)}"
        if one.runs > 1
        else f"at {format_minute(one.first)}"
    )
    return f"{format_count(one.outcomes, 'outcome')} of {format_count(one.runs, 'run')} {span}"


def _format_flapping(flaps: Sequence[FlakyCheck]) -> Iterator[str]:
    """Yield a line for each check that flaps, or for those that do so alike on one node."""
    alike: dict[tuple[object, ...], list[FlakyCheck]] = defaultdict(list)
    for one in flaps:
        alike[one.node or one.subject, one.check, one.times, one.judged, one.verdict].append(one)
    for (_, _, times, judgements, verdict), same in islice(alike.items(), MAX_FLAPPING_SHOWN):
        turned = f"turned {times} times in the last {judgements} judgements, at last {verdict}"
        yield f"{typer.style('flaps', fg='yellow')} {_format_subject_and_check(same)}  {turned}"
    if len(alike) > MAX_FLAPPING_SHOWN:
        yield f"… and {len(alike) - MAX_FLAPPING_SHOWN} more; `--check` says of which to tell"


def _format_measurement(one: MeasurementNoise) -> str:
    now = f"{one.subject:<{SUBJECT_WIDTH}} {one.name:<24} {format_value(one.value)} {one.unit}".rstrip()
    if one.median is None:
        return f"{now}, measured once"
    spread = f" ± {one.noise:.2g}" if one.noise else ""
    return f"{now}, before {format_value(round(one.median, 3))}{spread} ({format_count(one.count, 'document')})"


def _format_rate(one: PoolDayRate) -> str:
    success = "no verdict" if one.success is None else f"{one.success:8.2%}"
    counts = {"passed": one.passed, "failed": one.failed, "known": one.known, "not judged": one.errors}
    parts = [f"{count} {word}" for word, count in {**counts, "skipped": one.skipped}.items() if count]
    return f"{one.day}  {one.pool:<{SUBJECT_WIDTH}} {success}  {format_count(one.runs, 'run')}, {', '.join(parts)}"
