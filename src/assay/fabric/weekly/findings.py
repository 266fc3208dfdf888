"""What stands out in a week of a fabric. Each finding names one port, and says why in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log10
from typing import Literal

from assay.fabric.weekly.compared_readings import LEAST_BER, READINGS
from assay.fabric.weekly.peer_comparison import PEER_SCORE, Limits, PeerDeviation, format_figure
from assay.fabric.weekly.week import PortWeek

FindingKind = Literal["limit", "outlier", "drift", "flap"]
FLAP_LIMIT = "link_downed_a_day"


@dataclass(frozen=True, slots=True)
class PortFinding:
    """Why a port stands out: `weight` orders findings, the largest first; about 1 is just beyond what may be."""

    kind: FindingKind
    port: PortWeek
    what: str
    value: float
    unit: str
    text: str
    weight: float


def find_over_limits(ports: Iterable[PortWeek], limits: Limits) -> Iterator[PortFinding]:
    """Yield ports that ended the week beyond a limit of the design."""
    for port in ports:
        for name, value, high in _limited(port):
            limit = limits.get(name)
            if limit and (value > limit.value if high else value < limit.value):
                word = "above" if high else "below"
                says = (
                    f"{name.replace('_', ' ')} {format_figure(value)} {limit.unit}, {word} the limit of {limit.value:g}"
                )
                yield PortFinding("limit", port, name, value, limit.unit, says, _beyond(name, value, limit.value))


def _limited(port: PortWeek) -> Iterator[tuple[str, float, bool]]:
    """Yield the newest readings that have a limit: its name, the reading, and whether more is worse."""
    told = port.summary
    for kind, ratio in told.ber.items():
        yield f"{kind}_ber", ratio, True
    if temperature := told.trends.get("temperature"):
        yield "module_temperature", temperature.last, True
    for name, lanes in (("rx_power", told.rx), ("tx_power", told.tx)):
        if lanes:
            yield f"{name}_low", lanes[0], False
            yield name, lanes[-1], True
    if port.counted_h:
        yield "symbol_errors", told.symbol_errors / max(port.counted_h, 1.0), True


def _beyond(name: str, value: float, limit: float) -> float:
    if name.endswith("_ber"):
        return 1 + log10(max(value, LEAST_BER) / limit)
    return 1 + abs(value - limit) / max(abs(limit), 1.0)


def find_flapping(ports: Iterable[PortWeek], limits: Limits) -> Iterator[PortFinding]:
    """Yield ports whose link went down more often in a day than the design forgives."""
    limit = limits.get(FLAP_LIMIT)
    for port in ports if limit else ():
        if limit and (downs := port.summary.downs_a_day) > limit.value:
            says = f"went down {downs} times within a day, more than {limit.value:g}"
            yield PortFinding("flap", port, "downs a day", downs, "count", says, downs)


def find_outliers(
    standing: Mapping[int, PeerDeviation], ports: Sequence[PortWeek], limits: Limits
) -> Iterator[PortFinding]:
    """Yield ports that are worse than their peers by more than the design's score."""
    limit = limits.get(PEER_SCORE)
    for number, one in standing.items() if limit else ():
        if limit and one.score > limit.value:
            says, weight = f"{one} (score {one.score:.1f})", min(one.score / limit.value, 10.0)
            yield PortFinding("outlier", ports[number], one.metric.name, one.value, one.metric.unit, says, weight)


def find_drifts(ports: Iterable[PortWeek], limits: Limits) -> Iterator[PortFinding]:
    """Yield ports where a reading creeps by more in a week than the design forgives."""
    judged = [(reading, limit.value) for reading in READINGS if (limit := limits.get(reading.drift_limit))]
    for port in ports:
        for reading, worth in judged:
            trend = port.summary.trends.get(reading.key)
            a_week = trend.a_week if trend else None
            if trend and a_week is not None and a_week * reading.worse > worth:
                path = f"{reading.name} from {format_figure(trend.first)} to {format_figure(trend.last)} {reading.unit}"
                says, weight = f"{path}: {a_week:+.2g} a week", a_week * reading.worse / worth
                yield PortFinding("drift", port, reading.name, a_week, reading.unit, says, weight)
