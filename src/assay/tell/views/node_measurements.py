"""What checks measured on a node, against the limit and beside its peers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median

from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.outcome import Measurement, RecordedOutcome

MAX_PEERS = 24
SeriesKey = tuple[str, str]
"""A check and the name of what it measures."""


@frozen
class PeerValues:
    """What the peers of a node measured last: lowest, median, highest, and how many values there are."""

    low: float
    middle: float
    high: float
    count: int


@frozen
class LimitedSeries:
    """A measurement of the part that is nearest to its limit, of so many `parts`: points of time and value.

    Times are ISO 8601 UTC, oldest first. `source` is the file and line of the limit, "" if it has none.
    """

    check: str
    name: str
    subject: str
    parts: int
    points: tuple[tuple[str, float], ...]
    unit: str
    at_least: float | None
    at_most: float | None
    source: str
    peers: PeerValues | None

    @property
    def is_beyond_limit(self) -> bool:
        """Whether the newest value breaks the limit."""
        value = self.points[-1][1]
        low, high = self.at_least, self.at_most
        return (low is not None and value < low) or (high is not None and value > high)


def list_peers(fleet: Fleet, node: Node) -> list[str]:
    """Return the nodes of the same spec that stand next to this one in the inventory, without it."""
    alike = [other.name for other in fleet.nodes.values() if other.spec == node.spec]
    at = alike.index(node.name)
    first = max(0, min(at - MAX_PEERS // 2, len(alike) - MAX_PEERS - 1))
    return [name for name in alike[first : first + MAX_PEERS + 1] if name != node.name]


def list_series(outcomes: Iterable[RecordedOutcome], of_peers: Iterable[RecordedOutcome]) -> list[LimitedSeries]:
    """Return the series of a node, the ones nearest to their limits first. `outcomes` are in the order of writing."""
    parts_by_key: dict[SeriesKey, dict[str, list[tuple[str, Measurement]]]] = defaultdict(lambda: defaultdict(list))
    for recorded in outcomes:
        for measurement in recorded.outcome.measurements:
            series = parts_by_key[recorded.outcome.check, measurement.name][recorded.outcome.subject]
            series.append((recorded.measured_at, measurement))
    peers = _collect_peers(of_peers)
    made = [_make_series(key, parts, peers.get(key)) for key, parts in parts_by_key.items()]

    def rank(series: LimitedSeries) -> tuple[float, str]:
        return -_find_strain(series.points[-1][1], series.at_least, series.at_most), series.name

    return sorted(made, key=rank)


def _make_series(
    key: SeriesKey, parts: dict[str, list[tuple[str, Measurement]]], peers: Sequence[float] | None
) -> LimitedSeries:
    def strain(subject: str) -> float:
        newest = parts[subject][-1][1]
        return _find_strain(newest.value, newest.at_least, newest.at_most)

    worst = max(parts, key=strain)
    newest = parts[worst][-1][1]
    return LimitedSeries(
        *key,
        subject=worst,
        parts=len(parts),
        points=tuple((at, measurement.value) for at, measurement in parts[worst]),
        unit=newest.unit,
        at_least=newest.at_least,
        at_most=newest.at_most,
        source=newest.source,
        peers=PeerValues(min(peers), median(peers), max(peers), len(peers)) if peers else None,
    )


def _find_strain(value: float, at_least: float | None, at_most: float | None) -> float:
    """Return how near a value is to its limit: 1 at the limit, more beyond it; 0 without a limit."""
    shares = [value / at_most] if at_most else []
    shares += [at_least / value if value else float("inf")] if at_least else []
    return max(shares, default=0.0)


def _collect_peers(outcomes: Iterable[RecordedOutcome]) -> dict[SeriesKey, list[float]]:
    values: dict[SeriesKey, list[float]] = defaultdict(list)
    for recorded in outcomes:
        for measurement in recorded.outcome.measurements:
            values[recorded.outcome.check, measurement.name].append(measurement.value)
    return values
