"""Distributions as lines of text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from assay.model.text.text_lists import format_count, format_percent
from assay.model.traced_values import format_value
from assay.validate.results.outcome_lines import SUBJECT_WIDTH, escape_control, shorten_check
from assay.validate.results.peer_distribution import PeerDistribution, PeerOutlier, SpecChange, ValueLimit

if TYPE_CHECKING:
    from assay.validate.results.distribution_answers import (
        DistributionAnswer,
        LimitAnswer,
        OutlierAnswer,
        SpecChangeAnswer,
    )

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


def make_distributions_json(distributions: Iterable[PeerDistribution]) -> list[DistributionAnswer]:
    """Return the distributions as JSON values."""
    return [_distribution_as_json(one) for one in distributions]


def _distribution_as_json(one: PeerDistribution) -> DistributionAnswer:
    change = one.change
    return {
        "check": one.check,
        "name": one.name,
        "unit": one.unit,
        "kind": {"sku": one.kind.sku, "firmware": one.kind.firmware, "driver": one.kind.driver},
        "parts": one.parts,
        "nodes": one.nodes,
        "levels": list(one.levels),
        "bars": list(one.bars),
        "limit": _limit_as_json(one.limit),
        "outliers": [_outlier_as_json(outlier) for outlier in one.outliers],
        "course": [{"run": point.run, "at": point.at, "value": point.value} for point in one.course],
        "change": _change_as_json(change) if change else None,
    }


def _limit_as_json(limit: ValueLimit) -> LimitAnswer:
    return {"at_least": limit.at_least, "at_most": limit.at_most, "source": limit.source}


def _change_as_json(change: SpecChange) -> SpecChangeAnswer:
    return {
        "was": change.was,
        "now": change.now,
        "before": change.before,
        "after": change.after,
        "parts": change.parts,
    }


def _outlier_as_json(outlier: PeerOutlier) -> OutlierAnswer:
    part = outlier.part
    return {
        "subject": part.subject,
        "node": part.node,
        "at": part.at,
        "value": part.value,
        "limit": _limit_as_json(part.limit),
        "before": part.before,
        "after": part.after,
        "score": outlier.score,
        "reason": outlier.reason,
    }


def _format_level(value: float) -> str:
    return format_value(round(value, 3))


def _scale(points: Sequence[float]) -> list[float]:
    """Return the points from 1 (the lowest) to 8."""
    low, high = min(points), max(points)
    return [1 + 7 * (point - low) / ((high - low) or 1) for point in points]
