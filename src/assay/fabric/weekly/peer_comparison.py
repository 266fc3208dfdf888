"""How far each port stands from its peers: the ports of its rail, of its switch, and with the same module.

Statistics that a few bad values do not bend: medians instead of means.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from assay.fabric.weekly.compared_readings import READINGS
from assay.fabric.weekly.week import PortWeek
from assay.model.specs.node_spec import MetricLimit

MIN_PEERS = 8
"""With fewer peers than this nobody stands out."""
_MAD_OF_NORMAL = 0.6745
_MEAN_DEVIATION_OF_NORMAL = 1.253314


def compute_z_scores(values: Sequence[float]) -> list[float]:
    """Return how far each value is from the median of all, as a modified z-score; 0 where all are equal.

    Beyond 3.5 a value is an outlier (Iglewicz and Hoaglin, How to Detect and Handle Outliers).
    Where more than half of them are equal, and so the median deviation is 0, the mean deviation stands in, as usual for
    this score.
    """
    if not values:
        return []
    middle = median(values)
    deviations = [abs(value - middle) for value in values]
    if spread := median(deviations):
        return [_MAD_OF_NORMAL * (value - middle) / spread for value in values]
    if spread := fmean(deviations):
        return [(value - middle) / (_MEAN_DEVIATION_OF_NORMAL * spread) for value in values]
    return [0.0] * len(values)


def compute_median_slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the median of the slopes between points half of them apart, 0 for fewer than two.

    Theil's incomplete method: as few slopes as points, each over a long time; a quarter of the points may be wrong.
    """
    half = (len(points) + 1) // 2
    pairs = zip(points, points[half:], strict=False)
    slopes = [(after - before) / (later - earlier) for (earlier, before), (later, after) in pairs if later != earlier]
    return median(slopes) if slopes else 0.0


Limits = Mapping[str, MetricLimit]
PEER_SCORE = "peer_score"
"""The limit of a design beyond which a score stands out."""


@dataclass(frozen=True, slots=True)
class PeerMetric:
    """One number of a port that its peers have too; `key` and `apart` as in Reading."""

    key: str
    name: str
    unit: str
    worse: int
    distance_limit: str
    of: Callable[[PortWeek], float | None]


@dataclass(frozen=True, slots=True)
class PeerDeviation:
    """Where a port stands among `peers`, whose median is `middle`: `score` is positive on the worse side.

    It is 0 where the port is nearer to them than matters.
    """

    metric: PeerMetric
    value: float
    middle: float
    score: float
    peers: str

    def __str__(self) -> str:
        unit = f" {self.metric.unit}" if self.metric.unit else ""
        return f"{self.metric.name} {format_figure(self.value)}{unit}, where {self.peers} have {format_figure(self.middle)}"


def format_figure(value: float) -> str:
    """Return a number with three figures, large ones in full."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _usual(key: str) -> Callable[[PortWeek], float | None]:
    return lambda week: week.summary.usual(key)


METRICS = (
    PeerMetric("errors", "errors a day", "", 1, "errors_apart", lambda week: week.errors_per_day),
    *(PeerMetric(one.key, one.name, one.unit, one.worse, one.distance_limit, _usual(one.key)) for one in READINGS),
)


def compare_with_peers(ports: Sequence[PortWeek], metric: PeerMetric, limits: Limits) -> dict[int, PeerDeviation]:
    """Return where each port stands, by its number in `ports`, against the peers that tell it best.

    Ports without the reading, and those with too few peers, are left out; so are all, where the design does not say
    how far apart matters.
    """
    least = limits.get(metric.distance_limit)
    values = {number: value for number, port in enumerate(ports) if (value := metric.of(port)) is not None}
    found: dict[int, PeerDeviation] = {}
    for group, members in _groups(ports, values).items() if least else ():
        if len(members) >= MIN_PEERS:
            middle = median(values[number] for number in members)
            for number, score in _scores(metric, members, values, middle, least.value if least else 0.0):
                if number not in found or score > found[number].score:
                    found[number] = PeerDeviation(metric, values[number], middle, score, group)
    return found


def _scores(
    metric: PeerMetric, members: Sequence[int], values: Mapping[int, float], middle: float, least: float
) -> Iterable[tuple[int, float]]:
    """Yield how far each is from the others, positive on the worse side; 0 where it is nearer than matters."""
    among = [values[number] for number in members]
    for number, value, apart in zip(members, among, compute_z_scores(among), strict=True):
        near = (value - middle) * metric.worse < least
        yield number, min(apart * metric.worse, 0.0) if near else apart * metric.worse


def _groups(ports: Sequence[PortWeek], among: Iterable[int]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = defaultdict(list)
    for number in among:
        for name in _peers_of(ports[number]):
            groups[name].append(number)
    return groups


def _peers_of(port: PortWeek) -> Iterable[str]:
    side = "adapters" if port.end.node else "switch ports"
    if port.rail is not None:
        yield f"the {side} of rail {port.rail}"
    if not port.end.node:
        yield f"the ports of {port.end.device}"
    if port.summary.part:
        yield f"all {side} with {port.summary.vendor} {port.summary.part}"
