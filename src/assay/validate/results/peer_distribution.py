"""The distribution of a measurement over like nodes, and the parts that are unlike them. Pure statistics.

Nodes are like each other if their SKU, firmware bundle and driver are the same. An outlier is on the worse side of its
limit, by the modified z-score (Iglewicz and Hoaglin), and far enough from the median to matter.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import NamedTuple

from assay.fabric.weekly.peer_comparison import MIN_PEERS, compute_z_scores
from assay.model.traced_values import format_value
from assay.validate.results.node_kinds import NodeKind

OUTLIER_SCORE = 3.5
TUKEY_FENCE = 1.5
"""An outlier is beyond the middle half by so many times its width: where values fall into two groups, none is."""
MIN_DISTANCE = 0.02
"""An outlier is at least this share of the median away from it: among equal values, any noise has a high score."""
HISTOGRAM_BARS = 24


class ValueLimit(NamedTuple):
    """The limit of a measurement and where it stands; None for no bound."""

    at_least: float | None
    at_most: float | None
    source: str

    def __str__(self) -> str:
        bounds = [f"at least {format_value(self.at_least)}"] if self.at_least is not None else []
        bounds += [f"at most {format_value(self.at_most)}"] if self.at_most is not None else []
        return " and ".join(bounds) + (f" ({self.source})" if bounds and self.source else "")

    @property
    def worse_side(self) -> int:
        """-1 where low values are worse, 1 where high ones are, 0 where both are."""
        return (self.at_most is not None) - (self.at_least is not None)


class PartValue(NamedTuple):
    """The newest value of a part, its time (ISO 8601), and its means `before` and `after` the change of spec."""

    subject: str
    node: str
    at: str
    value: float
    limit: ValueLimit
    before: float | None = None
    after: float | None = None


class RunMedian(NamedTuple):
    """The median over like nodes in a run."""

    run: str
    at: str
    value: float


class SpecChange(NamedTuple):
    """The specs before and after a change, and the medians over those `parts` that both measured."""

    was: str
    now: str
    before: float
    after: float
    parts: int

    @property
    def share(self) -> float | None:
        """The change as a share of the value before, None where that was 0."""
        return (self.after - self.before) / abs(self.before) if self.before else None


@dataclass(frozen=True, slots=True)
class PeerOutlier:
    """A part that is unlike its peers: how many deviations from their median, and why that is told."""

    part: PartValue
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class PeerDistribution:
    """A measurement over the parts of like nodes. `levels`: minimum, three quartiles and maximum.

    `bars`: how many parts have a value in each of HISTOGRAM_BARS equal intervals from the minimum to the maximum.
    """

    check: str
    name: str
    unit: str
    kind: NodeKind
    parts: int
    nodes: int
    levels: tuple[float, float, float, float, float]
    bars: tuple[int, ...]
    limit: ValueLimit
    outliers: tuple[PeerOutlier, ...]
    course: tuple[RunMedian, ...] = ()
    change: SpecChange | None = None


def describe_values(
    check: str,
    name: str,
    unit: str,
    kind: NodeKind,
    parts: Sequence[PartValue],
    course: Sequence[RunMedian] = (),
    specs: tuple[str, str] | None = None,
) -> PeerDistribution:
    """Return the distribution of at least one part. `specs`: those before and after the change, None without one."""
    values = [part.value for part in parts]
    newest = max(parts, key=lambda part: part.at)
    return PeerDistribution(
        check=check,
        name=name,
        unit=unit,
        kind=kind,
        parts=len(parts),
        nodes=len({part.node for part in parts}),
        levels=_measure_levels(values),
        bars=_count_bars(values),
        limit=newest.limit,
        outliers=tuple(_find_outliers(name, unit, parts)),
        course=tuple(course),
        change=_compare_specs(parts, specs) if specs else None,
    )


def _measure_levels(values: Sequence[float]) -> tuple[float, float, float, float, float]:
    low, middle, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    return min(values), low, middle, high, max(values)


def _count_bars(values: Sequence[float]) -> tuple[int, ...]:
    low, high = min(values), max(values)
    edges = [low + (high - low) * number / HISTOGRAM_BARS for number in range(1, HISTOGRAM_BARS)]
    counts = [0] * HISTOGRAM_BARS
    for value in values:
        counts[bisect_right(edges, value) if high > low else HISTOGRAM_BARS // 2] += 1
    return tuple(counts)


def _find_outliers(name: str, unit: str, parts: Sequence[PartValue]) -> list[PeerOutlier]:
    """Return the outliers, the farthest first; none among too few peers."""
    if len(parts) < MIN_PEERS:
        return []
    values = [part.value for part in parts]
    _, low, middle, high, _ = _measure_levels(values)
    fence = TUKEY_FENCE * (high - low)
    found = []
    for part, score in zip(parts, compute_z_scores(values), strict=True):
        is_worse = not part.limit.worse_side or part.limit.worse_side * score > 0
        is_outside = not low - fence <= part.value <= high + fence
        is_far = is_outside and abs(part.value - middle) >= MIN_DISTANCE * abs(middle)
        if is_worse and is_far and abs(score) > OUTLIER_SCORE:
            reason = _describe_outlier(name, unit, part, len(parts), middle, score)
            found.append(PeerOutlier(part, score, reason))
    return sorted(found, key=lambda outlier: (-abs(outlier.score), outlier.part.subject))


def _describe_outlier(name: str, unit: str, part: PartValue, parts: int, middle: float, score: float) -> str:
    side = "above" if score > 0 else "below"
    value = f"{name} {format_value(round(part.value, 3))} {unit}".rstrip()
    peers = f"the median of {parts:,} parts on like nodes is {format_value(round(middle, 3))}"
    return f"{value}, where {peers}: {abs(score):.1f} deviations {side}"


def _compare_specs(parts: Sequence[PartValue], specs: tuple[str, str]) -> SpecChange | None:
    """Return the change over the parts that both specs measured, None for no such part."""
    pairs = [(part.before, part.after) for part in parts if part.before is not None and part.after is not None]
    if not pairs:
        return None
    before, after = (median(values) for values in zip(*pairs, strict=True))
    return SpecChange(*specs, before, after, len(pairs))
