"""Distributions as lines of text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from assay.model.text_lists import format_count, format_percent
from assay.model.traced_values import format_value
from assay.results.distribution.peer_distribution import PeerDistribution, SpecChange
from assay.results.outcome_lines import SUBJECT_WIDTH, escape_control, shorten_check

BLOCKS = " ▁▂▃▄▅▆▇█"
MAX_OUTLIERS = 20


def format_distributions_text(distributions: Iterable[PeerDistribution]) -> Iterator[str]:
    """Yield the lines of each distribution."""
    for one in distributions:
        yield f"{one.name}, {shorten_check(one.check)}: {one.kind}"
        low, first, middle, third, high = map(_format_level, one.levels)
        places = f"{format_count(one.parts, 'part')} of {format_count(one.nodes, 'node')}"
        yield f"  {places}: median {middle} {one.unit}, half of them {first} to {third}".rstrip()
        yield f"  {low} {draw_bars(one.bars)} {high}" + (f"   limit {one.limit}" if str(one.limit) else "")
        if len(one.course) > 1:
            points = [point.value for point in one.course]
            yield f"  medians of {len(points)} runs: {draw_bars(_scale(points))} now {_format_level(points[-1])}"
        if one.change:
            yield f"  {format_change(one.change, one.unit)}"
        yield from (
            f"  unlike its peers: {outlier.part.subject:<{SUBJECT_WIDTH}} {escape_control(outlier.reason)}"
            for outlier in one.outliers[:MAX_OUTLIERS]
        )
        if len(one.outliers) > MAX_OUTLIERS:
            yield f"  and {len(one.outliers) - MAX_OUTLIERS} more that are unlike their peers"


def format_change(change: SpecChange, unit: str) -> str:
    """Return what a change of spec did as text."""
    share = (
        f" ({'+' if change.after >= change.before else '-'}{format_percent(abs(change.share))})" if change.share else ""
    )
    medians = f"median {_format_level(change.before)} → {_format_level(change.after)} {unit}".rstrip()
    return f"specs {change.was} → {change.now}: {medians}{share} on {format_count(change.parts, 'part')}"


def draw_bars(counts: Sequence[float]) -> str:
    """Return numbers as a line of blocks; what is not 0 is never blank."""
    most = max(counts, default=0) or 1
    return "".join(BLOCKS[max(1, round(8 * count / most)) if count else 0] for count in counts)


def make_distributions_json(distributions: Iterable[PeerDistribution]) -> list[dict[str, Any]]:
    """Return the distributions as JSON values."""
    found = []
    for one in distributions:
        value = asdict(one)
        value["kind"] = one.kind._asdict()
        value["limit"] = one.limit._asdict()
        value["course"] = [point._asdict() for point in one.course]
        value["change"] = one.change._asdict() if one.change else None
        value["outliers"] = [
            {
                **outlier.part._asdict(),
                "limit": outlier.part.limit._asdict(),
                "score": outlier.score,
                "reason": outlier.reason,
            }
            for outlier in one.outliers
        ]
        found.append(value)
    return found


def _format_level(value: float) -> str:
    return format_value(round(value, 3))


def _scale(points: Sequence[float]) -> list[float]:
    """Return the points from 1 (the lowest) to 8."""
    low, high = min(points), max(points)
    return [1 + 7 * (point - low) / ((high - low) or 1) for point in points]
