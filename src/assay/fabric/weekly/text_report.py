"""The weekly evaluation as text, and as plain JSON data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from assay.fabric.weekly.evaluation import RankedPort, WeeklyEvaluation
from assay.model.text_lists import format_count


def format_weekly_verdict(evaluation: WeeklyEvaluation) -> str:
    """Return the state of the fabric in one line."""
    links, scans = format_count(len(evaluation.ports) // 2, "link"), format_count(evaluation.week.scans, "scan")
    verdict = describe_ports_to_check(evaluation)
    return f"fabric {evaluation.fabric}: {verdict} ({links}, {scans}, {format_week_span(evaluation)})"


def describe_ports_to_check(evaluation: WeeklyEvaluation) -> str:
    """Return how many ports need a look, or why nothing is known yet."""
    if count := len(evaluation.ranked):
        return f"{count} of {len(evaluation.ports)} ports {'needs' if count == 1 else 'need'} a look"
    if doubt := evaluation.week.doubt:
        return f"nothing is known yet: {doubt[1]}"
    return "nothing stands out"


def format_week_span(evaluation: WeeklyEvaluation) -> str:
    """Return the first and the last time of the week."""
    return f"{evaluation.week.start:%Y-%m-%d %H:%M} to {evaluation.week.end:%Y-%m-%d %H:%M} UTC"


def format_weekly_text(evaluation: WeeklyEvaluation) -> str:
    """Return the evaluation for people: the worst ports with places and reasons, batches, and what is not known."""
    return "\n".join(_format_lines(evaluation))


def _format_lines(evaluation: WeeklyEvaluation) -> Iterator[str]:
    yield format_weekly_verdict(evaluation)
    for number, ranked in enumerate(evaluation.worst, start=1):
        yield ""
        yield f"{number}. {ranked.port.end}, cable to {ranked.port.far}"
        yield from (f"   {finding.kind}: {finding.text}" for finding in ranked.findings)
    if len(evaluation.ranked) > len(evaluation.worst):
        yield f"\n… and {len(evaluation.ranked) - len(evaluation.worst)} more; see --format json or html"
    flagged = [batch for batch in evaluation.batches if batch.flagged]
    if flagged:
        yield "\ncables by vendor and batch:"
    yield from (f"  {batch}" for batch in flagged)
    if evaluation.unknown_reasons:
        yield "\nnot known:"
    yield from (f"  {reason}" for reason in evaluation.unknown_reasons)


def format_weekly_json(evaluation: WeeklyEvaluation) -> dict[str, Any]:
    """Return plain JSON data."""
    week = evaluation.week
    return {
        "fabric": evaluation.fabric,
        "verdict": "look" if evaluation.ranked else "unknown" if week.doubt else "well",
        "start": week.start.isoformat(),
        "end": week.end.isoformat(),
        "scans": week.scans,
        "ports": len(evaluation.ports),
        "errors": evaluation.errors,
        "worst": [_format_ranked_json(ranked) for ranked in evaluation.ranked],
        "batches": [
            {
                "vendor": batch.vendor, "part": batch.part, "batch": batch.batch, "ports": batch.ports,
                "standing_out": batch.flagged, "with_errors": batch.with_errors, "chance": batch.chance,
            }
            for batch in evaluation.batches
        ],
        "unseen": list(evaluation.unknown_reasons),
    }  # fmt: skip


def _format_ranked_json(ranked: RankedPort) -> dict[str, Any]:
    port = ranked.port
    findings = [
        {"kind": one.kind, "what": one.what, "value": one.value, "unit": one.unit, "says": one.text}
        for one in ranked.findings
    ]
    return {
        "port": port.end.as_json(),
        "far": port.far.as_json(),
        "rail": port.rail,
        "serial": port.summary.serial,
        "findings": findings,
    }
