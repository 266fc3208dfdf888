"""Reads a week's scans one at a time and keeps a few numbers of each port: 28 scans need no more room than one."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from heapq import nlargest
from itertools import pairwise
from math import isnan, nan
from statistics import median

from assay.fabric.health import counters
from assay.fabric.health.ber import ber_of
from assay.fabric.health.scanned import Scanned, scanned
from assay.fabric.many import many_objects
from assay.fabric.port_facts import FabricEvent, PortFacts
from assay.fabric.weekly.history import link_downs, most_downs_a_day, stored
from assay.fabric.weekly.readings import READINGS, Reading
from assay.fabric.weekly.robust import slope
from assay.fabric.weekly.week import DAYS, WEEK_S, PortTold, Trend, Week
from assay.model.cable import Cable, Port
from assay.model.evidence import Evidence

ERRORS = (counters.SYMBOL, counters.RECOVERY, *counters.LINK_ERRORS)
FEWEST_POINTS = 4
"""Fewer scans than this tell of no drift."""
DRAWN = 16
"""Of each reading the points of so many ports are kept, those that creep most: they are drawn."""


def gather(
    fabric: str,
    cables: Sequence[Cable],
    latest: Evidence,
    get: Callable[[str], Evidence],
    now: datetime,
    days: float = DAYS,
) -> Week:
    """Gather the scans of the last `days` before the newest. `get` returns a stored document by its digest.

    `now` is the moment of gathering: a fabric that was not scanned for long is told by it.
    """
    found = _Gathering(cables)
    with many_objects():
        for document in stored(latest, get, days):
            found.add(document)
        return found.week(fabric, latest.digest(), now)


class _Gathering:
    """What the scans told so far, the newest first."""

    def __init__(self, cables: Sequence[Cable]) -> None:
        ends = [(end.at, cable.rate) for cable in cables for end in cable.ends]
        self._numbers = {port: number for number, (port, _) in enumerate(ends)}
        self._rates = [rate for _, rate in ends]
        self._times: list[datetime] = []
        self._start: datetime | None = None
        self._columns: dict[str, list[array[float]]] = {one.key: [] for one in READINGS}
        self._modules: dict[int, PortFacts] = {}
        self._grown: dict[str, defaultdict[int, int]] = {name: defaultdict(int) for name in ("errors", "symbol")}
        self._downs: defaultdict[int, list[tuple[datetime, int]]] = defaultdict(list)
        self._stuck: dict[int, str] = {}
        self._events: list[FabricEvent] = []
        self._counted_s, self._asked, self._silent = 0.0, False, ""
        self._whole: list[datetime] = []
        self._said: dict[str, int] = defaultdict(int)

    def add(self, document: Evidence) -> None:
        """Take what one scan tells. Scans come newest first."""
        scan = scanned(document)
        self._notice(document, scan)
        self._read(scan.facts)
        self._count(scan)
        self._times.append(scan.at)
        self._start = scan.since or scan.at
        self._events += scan.events

    def _notice(self, document: Evidence, scan: Scanned) -> None:
        """Note how well the scan was read."""
        asked = "unsupported" not in document.channels.get("ports", {"unsupported": ""})
        self._asked |= asked
        if asked:
            self._silent = self._silent or next(iter((*scan.silent.values(), *scan.problems)), "")
        if scan.counted and not scan.problems:
            self._whole.append(scan.at)
        for why in (*scan.silent.values(), *scan.problems, *([scan.unknown] if scan.unknown else [])):
            self._said[why] += 1

    def _read(self, facts: Mapping[Port, PortFacts]) -> None:
        columns = [(array("d", [nan]) * len(self._rates), one.of) for one in READINGS]
        for port, told in facts.items():
            number = self._numbers.get(port)
            if number is None or not (told.module or told.ber):
                continue
            self._modules.setdefault(number, told)
            rate = self._rates[number]
            for column, of in columns:
                if (value := of(told, rate)) is not None:
                    column[number] = value
        for reading, (column, _) in zip(READINGS, columns, strict=True):
            self._columns[reading.key].append(column)

    def _count(self, scan: Scanned) -> None:
        self._counted_s += scan.seconds if scan.counted else 0.0
        for port, grown in scan.grown.items():
            number = self._numbers.get(port)
            if number is None:
                continue
            self._grown["errors"][number] += sum(grown.of(name).count for name in ERRORS)
            self._grown["symbol"][number] += grown.of(counters.SYMBOL).count
            if downs := grown.of(counters.DOWNED).count:
                self._downs[number].append((scan.at, downs))
            if not self._times and (stuck := [name for name, one in grown.counters.items() if one.stuck]):
                self._stuck[number] = min(stuck)

    def week(self, fabric: str, newest: str, now: datetime) -> Week:
        """Return it all."""
        seen = link_downs(self._events)
        trends = {one.key: self._trends(one) for one in READINGS}
        return Week(
            fabric, self._start or now, self._times[0], len(self._times), len(self._whole), self._gap_h(now),
            self._counted_s / counters.HOUR, newest, self._asked, self._silent,
            tuple(f"{why} ({times} of {len(self._times)} scans)" for why, times in self._said.items()),
            {port: self._port(port, number, trends, seen.get(port, ())) for port, number in self._numbers.items()},
        )  # fmt: skip

    def _gap_h(self, now: datetime) -> float:
        times = [now, *self._whole, self._start or now]
        return max((later - earlier).total_seconds() for later, earlier in pairwise(times)) / counters.HOUR

    def _port(
        self, port: Port, number: int, trends: Mapping[str, Mapping[int, Trend]], seen: Iterable[datetime]
    ) -> PortTold:
        told = self._modules.get(number) or PortFacts(port)
        ratio = ber_of(told, self._rates[number])
        return PortTold(
            errors=self._grown["errors"].get(number, 0),
            symbol_errors=self._grown["symbol"].get(number, 0),
            downs_a_day=most_downs_a_day(self._downs.get(number, ()), seen),
            stuck=self._stuck.get(number, ""),
            ber={ratio.kind: ratio.ratio} if ratio else {},
            rx=_ends(told, "rx_power_dbm"),
            tx=_ends(told, "tx_power_dbm"),
            vendor=str(told.module.get("vendor", "")),
            part=str(told.module.get("part", "")),
            serial=str(told.module.get("serial", "")),
            trends={key: found[number] for key, found in trends.items() if number in found},
        )

    def _trends(self, reading: Reading) -> dict[int, Trend]:
        """Return each port's trend of a reading; those that creep most keep their points, to be drawn."""
        times = [at.timestamp() for at in reversed(self._times)]
        columns = self._columns.pop(reading.key)[::-1]
        rows = zip(*columns, strict=True)
        found = {number: trend for number, row in enumerate(rows) if (trend := _trend(times, row))}
        creeping = (number for number, trend in found.items() if (trend.a_week or 0) * reading.worse > 0)
        for number in nlargest(DRAWN, creeping, key=lambda number: (found[number].a_week or 0) * reading.worse):
            points = _points(times, [column[number] for column in columns])
            found[number] = replace(found[number], points=tuple(points))
        return found


def _trend(times: Sequence[float], row: Sequence[float]) -> Trend | None:
    points = _points(times, row)
    if not points:
        return None
    values = [value for _, value in points]
    if len(set(values)) == 1:  # most lasers and ratios
        return Trend(values[0], values[0], values[0], 0.0 if len(points) >= FEWEST_POINTS else None)
    a_week = slope(points) * WEEK_S if len(points) >= FEWEST_POINTS else None
    return Trend(median(values), values[0], values[-1], a_week)


def _points(times: Sequence[float], row: Sequence[float]) -> list[tuple[float, float]]:
    """Return the moments at which a reading was told, and what it was."""
    return [(at, value) for at, value in zip(times, row, strict=True) if not isnan(value)]


def _ends(told: PortFacts, name: str) -> tuple[float, ...]:
    """Return the weakest and the strongest lane."""
    lanes = told.module.get(name)
    return (float(min(lanes)), float(max(lanes))) if isinstance(lanes, tuple | list) and lanes else ()
