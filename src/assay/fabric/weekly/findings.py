"""What stands out in a week of a fabric. Each finding names one port, and says why in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log10
from statistics import median
from typing import Literal

from assay.fabric.health.ports import PortHealth
from assay.fabric.weekly.history import PortWeek
from assay.fabric.weekly.robust import FEWEST, OUTLIER, scores, slope
from assay.model.nodespec import Limit

Kind = Literal["limit", "outlier", "drift", "flap"]
Limits = Mapping[str, Limit]
WEEK_S = 7 * 86_400.0
LEAST_BER = 1e-20
"""Below this a bit error ratio is a zero: tools write 15E-255."""


@dataclass(frozen=True, slots=True)
class Found:
    """Why a port stands out: `weight` orders findings, the largest first; about 1 is just beyond what may be."""

    kind: Kind
    port: PortWeek
    what: str
    value: float
    unit: str
    says: str
    weight: float


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a port that its peers have too. `worse` is the direction that matters.

    Less than `least` away from its peers is no matter.
    """

    name: str
    unit: str
    of: Callable[[PortWeek], float | None]
    worse: Literal[1, -1]
    least: float


def figure(value: float) -> str:
    """Return a number with three figures, large ones in full."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def temperature(one: PortHealth) -> float | None:
    """Return the module's temperature."""
    return one.optics.temperature_c


def light(one: PortHealth) -> float | None:
    """Return the light on the weakest lane."""
    return min(one.optics.rx_power_dbm, default=None)


def bias(one: PortHealth) -> float | None:
    """Return the current of the laser that needs most."""
    return max(one.optics.bias_ma, default=None)


def ber_exponent(one: PortHealth) -> float | None:
    """Return the power of ten of the bit error ratio that counts."""
    return log10(max(one.ber.ratio, LEAST_BER)) if one.ber else None


METRICS = (
    Metric("errors a day", "", lambda week: week.errors_per_day, 1, 10.0),
    Metric("bit error ratio", "powers of ten", lambda week: week.usual(ber_exponent), 1, 1.5),
    Metric("module temperature", "°C", lambda week: week.usual(temperature), 1, 8.0),
    Metric("received light", "dBm", lambda week: week.usual(light), -1, 1.0),
    Metric("laser current", "mA", lambda week: week.usual(bias), 1, 1.0),
)
"""`least` keeps a port out that is far from peers which differ by next to nothing (our own choice)."""

DRIFTS = (
    ("received light", "dBm", light, -1, 0.5),
    ("module temperature", "°C", temperature, 1, 5.0),
    ("bit error ratio", "powers of ten", ber_exponent, 1, 1.0),
    ("laser current", "mA", bias, 1, 0.5),
)
"""What may creep, in which direction it matters, and how much in a week is worth a look (our own choice)."""


def over_limits(ports: Iterable[PortWeek], limits: Limits) -> Iterator[Found]:
    """Yield ports that ended the week beyond a limit of the design."""
    for port in ports:
        for name, value, high in _limited(port):
            limit = limits.get(name)
            if limit and (value > limit.value if high else value < limit.value):
                word = "above" if high else "below"
                says = f"{name.replace('_', ' ')} {figure(value)} {limit.unit}, {word} the limit of {limit.value:g}"
                yield Found("limit", port, name, value, limit.unit, says, _beyond(name, value, limit.value))


def _limited(port: PortWeek) -> Iterator[tuple[str, float, bool]]:
    """Yield the newest readings that have a limit: its name, the reading, and whether more is worse."""
    last = port.last
    if last.ber:
        yield f"{last.ber.kind}_ber", last.ber.ratio, True
    if last.optics.temperature_c is not None:
        yield "module_temperature", last.optics.temperature_c, True
    for name, lanes in (("rx_power", last.optics.rx_power_dbm), ("tx_power", last.optics.tx_power_dbm)):
        if lanes:
            yield f"{name}_low", min(lanes), False
            yield name, max(lanes), True
    if port.hours:
        yield "symbol_errors", port.total("SymbolErrorCounter") / max(port.hours, 1.0), True


def _beyond(name: str, value: float, limit: float) -> float:
    if name.endswith("_ber"):
        return 1 + log10(max(value, LEAST_BER) / limit)
    return 1 + abs(value - limit) / max(abs(limit), 1.0)


def flapping(ports: Iterable[PortWeek], limits: Limits) -> Iterator[Found]:
    """Yield ports whose link went down more often in a day than the design forgives."""
    limit = limits.get("link_downed_a_day")
    for port in ports if limit else ():
        if limit and port.most_downs_a_day > limit.value:
            says = f"went down {port.most_downs_a_day} times within a day, more than {limit.value:g}"
            yield Found("flap", port, "downs a day", port.most_downs_a_day, "count", says, port.most_downs_a_day)


def outliers(ports: Sequence[PortWeek]) -> Iterator[Found]:
    """Yield ports that are worse than their peers: once a number, against the peers that tell it best."""
    for metric in METRICS:
        values = {number: value for number, port in enumerate(ports) if (value := metric.of(port)) is not None}
        best: dict[int, Found] = {}
        for group, members in _peers(ports, values).items():
            for found, number in _apart(metric, ports, group, {number: values[number] for number in members}):
                if number not in best or found.weight > best[number].weight:
                    best[number] = found
        yield from best.values()


def _peers(ports: Sequence[PortWeek], among: Iterable[int]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = defaultdict(list)
    for number in among:
        port = ports[number]
        side = "adapters" if port.end.node else "switch ports"
        if port.rail is not None:
            groups[f"the {side} of rail {port.rail}"].append(number)
        if not port.end.node:
            groups[f"the ports of {port.end.device}"].append(number)
        if part := port.last.optics.part:
            groups[f"all {side} with {port.last.optics.vendor} {part}"].append(number)
    return groups


def _apart(
    metric: Metric, ports: Sequence[PortWeek], group: str, values: Mapping[int, float]
) -> Iterator[tuple[Found, int]]:
    if len(values) < FEWEST:
        return
    middle = median(values.values())
    for (number, value), apart in zip(values.items(), scores(list(values.values())), strict=True):
        far = apart * metric.worse
        if far > OUTLIER and (value - middle) * metric.worse >= metric.least:
            unit = f" {metric.unit}" if metric.unit else ""
            says = f"{metric.name} {figure(value)}{unit}, where {group} have {figure(middle)} (score {far:.1f})"
            weight = min(far / OUTLIER, 10.0)
            yield Found("outlier", ports[number], metric.name, value, metric.unit, says, weight), number


def drifting(ports: Iterable[PortWeek]) -> Iterator[Found]:
    """Yield ports where a reading creeps: by more in a week than is worth a look, over at least four scans."""
    for port in ports:
        for what, unit, read, worse, worth in DRIFTS:
            points = [(at.timestamp(), value) for at, value in port.series(read)]
            a_week = slope(points) * WEEK_S
            if len(points) >= 4 and a_week * worse >= worth:
                says = f"{what} from {figure(points[0][1])} to {figure(points[-1][1])} {unit}: {a_week:+.2g} a week"
                yield Found("drift", port, what, a_week, unit, says, a_week * worse / worth)
