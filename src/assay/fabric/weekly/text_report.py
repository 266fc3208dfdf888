"""The weekly evaluation as text, and as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from assay.fabric.weekly.evaluation import RankedPort, WeeklyEvaluation
from assay.fabric.weekly.findings import PortFinding
from assay.model.text_lists import format_count


def format_weekly_verdict(one: WeeklyEvaluation) -> str:
    """Say in one line how the fabric is."""
    links = format_count(len(one.ports) // 2, "link")
    scans = format_count(one.scans, "scan")
    return f"fabric {one.fabric}: {describe_ports_to_check(one)} ({links}, {scans}, {format_week_span(one)})"


def describe_ports_to_check(one: WeeklyEvaluation) -> str:
    """Say how many ports need a look."""
    count = len(one.ranked)
    needs = "needs" if count == 1 else "need"
    if count:
        return f"{count} of {len(one.ports)} ports {needs} a look"
    return f"nothing can be told yet: {one.week.doubt[1]}" if one.week.doubt else "nothing stands out"


def format_week_span(one: WeeklyEvaluation) -> str:
    """Return from when to when."""
    return f"{one.start:%Y-%m-%d %H:%M} to {one.end:%Y-%m-%d %H:%M} UTC"


def format_weekly_text(one: WeeklyEvaluation) -> str:
    """Say it as people read it: the worst ports, each with its place and why; then batches and what was unseen."""
    return "\n".join(_lines(one))


def _lines(one: WeeklyEvaluation) -> Iterator[str]:
    yield format_weekly_verdict(one)
    for number, ranked in enumerate(one.worst, start=1):
        yield ""
        yield f"{number}. {ranked.port.end}, cable to {ranked.port.far}"
        yield from (f"   {found.kind}: {found.text}" for found in ranked.findings)
    if len(one.ranked) > len(one.worst):
        yield f"\n… and {len(one.ranked) - len(one.worst)} more; see --format json or html"
    bad = [batch for batch in one.batches if batch.bad]
    if bad:
        yield "\ncables by vendor and batch:"
    for batch in bad:
        yield f"  {batch}"
    if one.unseen:
        yield "\nnot seen:"
    yield from (f"  {why}" for why in one.unseen)


def format_weekly_json(one: WeeklyEvaluation) -> dict[str, Any]:
    """Return plain JSON data."""
    return {
        "fabric": one.fabric,
        "verdict": "look" if one.ranked else "unknown" if one.week.doubt else "well",
        "start": one.start.isoformat(),
        "end": one.end.isoformat(),
        "scans": one.scans,
        "ports": len(one.ports),
        "errors": one.errors,
        "worst": [_ranked(ranked) for ranked in one.ranked],
        "batches": [
            {
                "vendor": batch.vendor, "part": batch.part, "batch": batch.batch, "ports": batch.ports,
                "standing_out": batch.bad, "with_errors": batch.with_errors, "chance": batch.chance,
            }
            for batch in one.batches
        ],
        "unseen": list(one.unseen),
    }  # fmt: skip


def _ranked(ranked: RankedPort) -> dict[str, Any]:
    port = ranked.port
    return {
        "port": port.end.as_json(),
        "far": port.far.as_json(),
        "rail": port.rail,
        "serial": port.summary.serial,
        "findings": [_found(found) for found in ranked.findings],
    }


def _found(found: PortFinding) -> dict[str, Any]:
    return {"kind": found.kind, "what": found.what, "value": found.value, "unit": found.unit, "says": found.text}
