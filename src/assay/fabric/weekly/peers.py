"""How far each port stands from its peers: the ports of its rail, of its switch, and with the same module."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from assay.fabric.weekly.readings import READINGS
from assay.fabric.weekly.robust import FEWEST, scores
from assay.fabric.weekly.week import PortWeek
from assay.model.nodespec import Limit

Limits = Mapping[str, Limit]
PEER_SCORE = "peer_score"
"""The limit of a design beyond which a score stands out."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a port that its peers have too; `key` and `apart` as in Reading."""

    key: str
    name: str
    unit: str
    worse: int
    apart: str
    of: Callable[[PortWeek], float | None]


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a port stands among `peers`, whose median is `middle`: `score` is positive on the worse side.

    It is 0 where the port is nearer to them than matters.
    """

    metric: Metric
    value: float
    middle: float
    score: float
    peers: str

    def __str__(self) -> str:
        unit = f" {self.metric.unit}" if self.metric.unit else ""
        return f"{self.metric.name} {figure(self.value)}{unit}, where {self.peers} have {figure(self.middle)}"


def figure(value: float) -> str:
    """Return a number with three figures, large ones in full."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _usual(key: str) -> Callable[[PortWeek], float | None]:
    return lambda week: week.told.usual(key)


METRICS = (
    Metric("errors", "errors a day", "", 1, "errors_apart", lambda week: week.errors_per_day),
    *(Metric(one.key, one.name, one.unit, one.worse, one.apart, _usual(one.key)) for one in READINGS),
)


def standings(ports: Sequence[PortWeek], metric: Metric, limits: Limits) -> dict[int, Standing]:
    """Return where each port stands, by its number in `ports`, against the peers that tell it best.

    Ports without the reading, and those with too few peers, are left out; so are all, where the design does not say
    how far apart matters.
    """
    least = limits.get(metric.apart)
    values = {number: value for number, port in enumerate(ports) if (value := metric.of(port)) is not None}
    found: dict[int, Standing] = {}
    for group, members in _groups(ports, values).items() if least else ():
        if len(members) >= FEWEST:
            middle = median(values[number] for number in members)
            for number, score in _scores(metric, members, values, middle, least.value if least else 0.0):
                if number not in found or score > found[number].score:
                    found[number] = Standing(metric, values[number], middle, score, group)
    return found


def _scores(
    metric: Metric, members: Sequence[int], values: Mapping[int, float], middle: float, least: float
) -> Iterable[tuple[int, float]]:
    """Yield how far each is from the others, positive on the worse side; 0 where it is nearer than matters."""
    among = [values[number] for number in members]
    for number, value, apart in zip(members, among, scores(among), strict=True):
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
    if port.told.part:
        yield f"all {side} with {port.told.vendor} {port.told.part}"
