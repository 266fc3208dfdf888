"""Finds what stands out in a week of a fabric: flaps, outliers and drifts, port by port.

Also what could not be judged: readings that too few scans have, and ports whose counters do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from assay.fabric.weekly.compared_readings import READINGS, Drifts
from assay.fabric.weekly.peers import PEER_SCORE, Limits, PeerDeviation, format_figure
from assay.fabric.weekly.week import COUNTERS, FabricWeek, PortWeek
from assay.model.facts import fact, frozen, internal
from assay.model.text.lists import format_count

FindingKind = Literal["outlier", "drift", "flap", "repeated"]
FLAP_LIMIT = "link_downed_a_day"
MAX_OUTLIER_WEIGHT = 10.0
COUNTED = "link downs and errors"
"""What is judged by counters."""
CABLING = "discovery of the cables"


@fact
class PortFinding:
    """Why a port stands out."""

    kind: FindingKind
    """What kind of finding it is."""
    port: PortWeek = internal()
    what: str
    """The reading."""
    value: float
    """Its value."""
    unit: str
    """The unit of the value; "" for a count."""
    says: str
    """The finding in words."""
    weight: float = internal()


def find_flapping(ports: Iterable[PortWeek], limits: Limits) -> Iterator[PortFinding]:
    """Yield a finding for each port whose link went down more often within a day than the design allows."""
    limit = limits.get(FLAP_LIMIT)
    for port in ports if limit else ():
        if limit and (downs := port.summary.downs_a_day) > limit.value:
            text = f"went down {downs} times within a day, more than {limit.value:g}"
            yield PortFinding("flap", port, "downs a day", downs, "count", text, downs)


def find_outliers(
    deviations: Mapping[int, PeerDeviation], ports: Sequence[PortWeek], limits: Limits
) -> Iterator[PortFinding]:
    """Yield a finding for each port that is worse than its peers by more than the design's score.

    `deviations` has the index of each port in `ports`.
    """
    limit = limits.get(PEER_SCORE)
    for index, deviation in deviations.items() if limit else ():
        if limit and deviation.score > limit.value:
            metric, weight = deviation.metric, min(deviation.score / limit.value, MAX_OUTLIER_WEIGHT)
            text = f"{deviation} (score {deviation.score:.1f})"
            yield PortFinding("outlier", ports[index], metric.name, deviation.value, metric.unit, text, weight)


def find_drifts(ports: Iterable[PortWeek], drifts: Drifts, limits: Limits) -> Iterator[PortFinding]:
    """Yield a finding for each reading that gets worse in a week by more than the design allows."""
    limited = [(reading, limit.value) for reading in READINGS if (limit := limits.get(reading.drift_limit))]
    for port in ports:
        for reading, allowed in limited:
            trend = port.summary.trends.get(reading.key)
            worse = drifts.get((port.end.port_id, reading.key), 0.0)
            if trend and worse > allowed:
                drift = worse * reading.worse
                first, last = map(format_figure, trend.ends)
                span = f"{reading.name} from {first} to {last} {reading.unit}"
                text, weight = f"{span}: {drift:+.2g} a week", worse / allowed
                yield PortFinding("drift", port, reading.name, drift, reading.unit, text, weight)


@frozen
class UnjudgedPart:
    """A part of the week that was not judged, in a few words, and the reason."""

    part: str
    reason: str

    def __str__(self) -> str:
        return f"{self.part}: {self.reason}"


def _count_lacking(ports: Sequence[PortWeek], key: str) -> int:
    """Return how many ports lack a reading that ports with the same module have; or any of their side, without one."""
    lacking: Counter[tuple[str, str]] = Counter()
    given: set[tuple[str, str]] = set()
    for port in ports:
        trend, part = port.summary.trends.get(key), port.summary.part
        if trend and trend.per_week is not None:
            given |= {(port.side, part), (port.side, "")}
        else:
            lacking[port.side, part] += 1
    return sum(count for kind, count in lacking.items() if kind in given)


def find_unjudged_parts(week: FabricWeek, ports: Sequence[PortWeek]) -> Iterator[UnjudgedPart]:
    """Yield what was not judged, nothing where the whole week was not (`week.doubt` says why)."""
    if week.doubt:
        return
    if reason := week.find_unread(COUNTERS):
        yield UnjudgedPart(COUNTED, reason)
    names: dict[str, list[str]] = {}
    for reading in READINGS:
        if reason := week.find_unread(reading.key):
            names.setdefault(reason, []).append(reading.name)
        elif lacking := _count_lacking(ports, reading.key):
            scattered = f"too few scans read it of {format_count(lacking, 'port')}, while peers gave it"
            names.setdefault(scattered, []).append(reading.name)
    for reason, unread in names.items():
        yield UnjudgedPart(", ".join(unread), reason)
    if week.discoveries and not week.whole_discoveries:
        yield UnjudgedPart(CABLING, week.incomplete_discoveries)
    if stuck := sum(bool(port.summary.stuck_counter) for port in ports):
        yield UnjudgedPart(
            f"{COUNTED} of {format_count(stuck, 'port')}", "a counter stood at its maximum: it cannot count, clear it"
        )
