"""The weekly evaluation as text, and as plain JSON data."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from assay.fabric.fabric_answers import FabricWeekAnswer, RankedPortAnswer, WeekChanges
from assay.fabric.weekly.evaluation import WeeklyEvaluation
from assay.model.text.lists import format_count

SHOWN_CHANGES = 10


def _describe_ports_to_check(evaluation: WeeklyEvaluation) -> str:
    """Return how many ports need a look, or why nothing is known yet; and what was not judged."""
    unjudged = "; ".join(part.part for part in evaluation.unjudged)
    if count := len(evaluation.ranked):
        look = f"{count} of {len(evaluation.ports)} ports {'needs' if count == 1 else 'need'} a look"
        return f"{look}; not judged: {unjudged}" if unjudged else look
    if doubt := evaluation.week.doubt:
        return f"nothing is known yet: {doubt[1]}"
    return f"nothing stands out in what was judged; not judged: {unjudged}" if unjudged else "nothing stands out"


def format_weekly_text(evaluation: WeeklyEvaluation, changes: WeekChanges | None = None) -> str:
    """Return the evaluation for people: changes, the worst ports with places and reasons, what is not known."""
    return "\n".join(_format_lines(evaluation, changes))


def _format_changes(changes: WeekChanges | None, errors: int) -> Iterator[str]:
    if changes is None:
        yield "there is no evaluation of the week before to compare with"
        return
    yield (
        f"since {datetime.fromisoformat(changes.since):%Y-%m-%d %H:%M} UTC: {len(changes.new)} new, {len(changes.gone)}"
        f" gone, {changes.staying} as before; {errors:,} errors, {changes.errors_before:,} before"
    )
    for word, ports in (("new", changes.new), ("gone", changes.gone)):
        for changed in ports[:SHOWN_CHANGES]:
            yield f"  {word}: {changed.port}: {'; '.join(changed.says)}"
        if len(ports) > SHOWN_CHANGES:
            yield f"  and {len(ports) - SHOWN_CHANGES} more {word}"


def _format_lines(evaluation: WeeklyEvaluation, changes: WeekChanges | None) -> Iterator[str]:
    links, scans = format_count(len(evaluation.ports) // 2, "link"), format_count(evaluation.week.scans, "scan")
    span = f"{evaluation.week.start:%Y-%m-%d %H:%M} to {evaluation.week.end:%Y-%m-%d %H:%M} UTC"
    yield f"fabric {evaluation.fabric}: {_describe_ports_to_check(evaluation)} ({links}, {scans}, {span})"
    yield from _format_changes(changes, evaluation.errors)
    yield from evaluation.list_manager_moves()
    for number, ranked in enumerate(evaluation.worst, start=1):
        yield ""
        yield f"{number}. {ranked.port.end}, cable to {ranked.port.far}"
        yield from (f"   {finding.kind}: {finding.says}" for finding in ranked.findings)
    if len(evaluation.ranked) > len(evaluation.worst):
        yield f"\n… and {len(evaluation.ranked) - len(evaluation.worst)} more; see --format json"
    if evaluation.unknown_reasons:
        yield "\nnot known:"
    yield from (f"  {reason}" for reason in evaluation.unknown_reasons)
    for title, lines in (
        ("counters that do not count", evaluation.list_stuck_counters()),
        ("the newest discovery of the cables", evaluation.remarks),
    ):
        yield from [f"\n{title}:", *(f"  {line}" for line in lines[:SHOWN_CHANGES])] if lines else ()
        if len(lines) > SHOWN_CHANGES:
            yield f"  and {len(lines) - SHOWN_CHANGES} more; see --format json"


def make_week_answer(evaluation: WeeklyEvaluation, changes: WeekChanges | None = None) -> FabricWeekAnswer:
    """Return all that an evaluation says."""
    week = evaluation.week
    return FabricWeekAnswer(
        fabric=evaluation.fabric,
        verdict="look" if evaluation.ranked else "well" if evaluation.is_whole else "unknown",
        start=week.start.isoformat(),
        end=week.end.isoformat(),
        scans=week.scans,
        ports=len(evaluation.ports),
        errors=evaluation.errors,
        manager_moves=[list(move) for move in week.manager_moves],
        changes=changes,
        worst=[
            RankedPortAnswer(port.end, port.far, port.rail, port.summary.serial, ranked.findings)
            for ranked, port in ((each, each.port) for each in evaluation.ranked)
        ],
        unjudged=[part.part for part in evaluation.unjudged],
        stuck=evaluation.list_stuck_counters(),
        unseen=list(evaluation.unknown_reasons),
        discovery=list(evaluation.remarks),
    )
