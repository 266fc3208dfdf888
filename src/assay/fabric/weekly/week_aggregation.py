"""Reads a week's scans one at a time and keeps a few numbers of each port: 28 scans need no more room than one.

The stored scans of one fabric in a window of time, one after the other, and when its links went down.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from heapq import nlargest
from itertools import pairwise
from math import isnan, nan
from statistics import median

from assay.fabric.discovery import FabricEvent, PortFacts
from assay.fabric.health import counter_growth
from assay.fabric.health.bit_error_rate import find_bit_error_rate
from assay.fabric.health.link_flaps import count_most_in_window, drop_bursts
from assay.fabric.health.scan_facts import FabricScan, read_scan
from assay.fabric.weekly.compared_readings import READINGS, ComparedReading
from assay.fabric.weekly.peer_comparison import compute_median_slope
from assay.fabric.weekly.week import DAYS, WEEK_S, FabricWeek, PortWeekSummary, ReadingTrend
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.fabric.ports_and_cables import Cable, PortId
from assay.model.gc_pause import pause_gc

DAY = timedelta(days=1)
UFM_LINK_DOWN = 329
"""UFM's event for a link that went down; 328 is one that came up."""


def iter_stored_scans(
    latest: EvidenceDocument, get: Callable[[str], EvidenceDocument], days: float
) -> Iterator[EvidenceDocument]:
    """Yield the scans of the last `days` before the newest, newest first: each names the one before by its digest.

    One at a time, since a scan of a large fabric is tens of megabytes. Where one is not kept any more, or is damaged,
    history begins after it.
    """
    scan: EvidenceDocument | None = latest
    while scan and latest.at - scan.at <= timedelta(days=days):
        yield scan
        scan = _before(scan, get)


def _before(scan: EvidenceDocument, get: Callable[[str], EvidenceDocument]) -> EvidenceDocument | None:
    digest = scan.read("previous")
    try:
        return get(str(digest.value)) if digest.kind == "value" else None
    except AssayError:
        return None


def count_most_downs_a_day(counted: Iterable[tuple[datetime, int]], seen: Iterable[datetime]) -> int:
    """Return the most often that a link went down within any 24 hours, by its counters or by the fabric manager."""
    moments = list(counted)
    within = [sum(count for at, count in moments if start <= at < start + DAY) for start, _ in moments]
    return max([*within, count_most_in_window(seen, DAY)])


def find_link_downs(events: Iterable[FabricEvent]) -> dict[PortId, list[datetime]]:
    """Return when a fabric manager saw each port's link go down, each time once, without bursts.

    Very many links at one moment are a reboot or an outage of power, and no flapping of any of them.
    """
    seen = {(moment, one.ports) for one in events if one.code == UFM_LINK_DOWN and (moment := _moment(one.at))}
    kept = set(drop_bursts([moment for moment, _ in seen]))
    found: dict[PortId, list[datetime]] = defaultdict(list)
    for moment, ports in sorted(seen):
        for port in ports if moment in kept else ():
            found[port].append(moment)
    return found


def _moment(text: str) -> datetime | None:
    """Return a manager's own time, taken for UTC where it names no zone; None for a text that is no time."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


ERRORS = (counter_growth.SYMBOL, counter_growth.RECOVERY, *counter_growth.LINK_ERRORS)
MIN_TREND_POINTS = 4
"""Fewer scans than this tell of no drift."""
MAX_DRAWN_TRENDS = 16
"""Of each reading the points of so many ports are kept, those that creep most: they are drawn."""


def aggregate_week(
    fabric: str,
    cables: Sequence[Cable],
    latest: EvidenceDocument,
    get: Callable[[str], EvidenceDocument],
    now: datetime,
    days: float = DAYS,
) -> FabricWeek:
    """Gather the scans of the last `days` before the newest. `get` returns a stored document by its digest.

    `now` is the moment of gathering: a fabric that was not scanned for long is told by it.
    """
    found = _WeekAggregator(cables)
    with pause_gc():
        for document in iter_stored_scans(latest, get, days):
            found.add(document)
        return found.week(fabric, latest.digest(), now)


class _WeekAggregator:
    """What the scans told so far, the newest first."""

    def __init__(self, cables: Sequence[Cable]) -> None:
        ends = [(end.port_id, cable.rate) for cable in cables for end in cable.ends]
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

    def add(self, document: EvidenceDocument) -> None:
        """Take what one scan tells. Scans come newest first."""
        scan = read_scan(document)
        self._notice(document, scan)
        self._read(scan.facts)
        self._count(scan)
        self._times.append(scan.at)
        self._start = scan.since or scan.at
        self._events += scan.events

    def _notice(self, document: EvidenceDocument, scan: FabricScan) -> None:
        """Note how well the scan was read."""
        asked = "unsupported" not in document.channels.get("ports", {"unsupported": ""})
        self._asked |= asked
        if asked:
            self._silent = self._silent or next(iter((*scan.failed_commands.values(), *scan.problems)), "")
        if scan.has_counters and not scan.problems:
            self._whole.append(scan.at)
        for why in (
            *scan.failed_commands.values(),
            *scan.problems,
            *([scan.growth_unknown_reason] if scan.growth_unknown_reason else []),
        ):
            self._said[why] += 1

    def _read(self, facts: Mapping[PortId, PortFacts]) -> None:
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

    def _count(self, scan: FabricScan) -> None:
        self._counted_s += scan.seconds if scan.has_counters else 0.0
        for port, grown in scan.growths.items():
            number = self._numbers.get(port)
            if number is None:
                continue
            self._grown["errors"][number] += sum(grown.find_growth(name).count for name in ERRORS)
            self._grown["symbol"][number] += grown.find_growth(counter_growth.SYMBOL).count
            if downs := grown.find_growth(counter_growth.DOWNED).count:
                self._downs[number].append((scan.at, downs))
            if not self._times and (stuck := [name for name, one in grown.counters.items() if one.stuck]):
                self._stuck[number] = min(stuck)

    def week(self, fabric: str, newest: str, now: datetime) -> FabricWeek:
        """Return it all."""
        seen = find_link_downs(self._events)
        trends = {one.key: self._trends(one) for one in READINGS}
        return FabricWeek(
            fabric, self._start or now, self._times[0], len(self._times), len(self._whole), self._gap_h(now),
            self._counted_s / counter_growth.HOUR, newest, self._asked, self._silent,
            tuple(f"{why} ({times} of {len(self._times)} scans)" for why, times in self._said.items()),
            {port: self._port(port, number, trends, seen.get(port, ())) for port, number in self._numbers.items()},
        )  # fmt: skip

    def _gap_h(self, now: datetime) -> float:
        times = [now, *self._whole, self._start or now]
        return max((later - earlier).total_seconds() for later, earlier in pairwise(times)) / counter_growth.HOUR

    def _port(
        self, port: PortId, number: int, trends: Mapping[str, Mapping[int, ReadingTrend]], seen: Iterable[datetime]
    ) -> PortWeekSummary:
        told = self._modules.get(number) or PortFacts(port)
        ratio = find_bit_error_rate(told, self._rates[number])
        return PortWeekSummary(
            errors=self._grown["errors"].get(number, 0),
            symbol_errors=self._grown["symbol"].get(number, 0),
            downs_a_day=count_most_downs_a_day(self._downs.get(number, ()), seen),
            stuck=self._stuck.get(number, ""),
            ber={ratio.kind: ratio.ratio} if ratio else {},
            rx=_ends(told, "rx_power_dbm"),
            tx=_ends(told, "tx_power_dbm"),
            vendor=str(told.module.get("vendor", "")),
            part=str(told.module.get("part", "")),
            serial=str(told.module.get("serial", "")),
            trends={key: found[number] for key, found in trends.items() if number in found},
        )

    def _trends(self, reading: ComparedReading) -> dict[int, ReadingTrend]:
        """Return each port's trend of a reading; those that creep most keep their points, to be drawn."""
        times = [at.timestamp() for at in reversed(self._times)]
        columns = self._columns.pop(reading.key)[::-1]
        rows = zip(*columns, strict=True)
        found = {number: trend for number, row in enumerate(rows) if (trend := _trend(times, row))}
        creeping = (number for number, trend in found.items() if (trend.a_week or 0) * reading.worse > 0)
        for number in nlargest(
            MAX_DRAWN_TRENDS, creeping, key=lambda number: (found[number].a_week or 0) * reading.worse
        ):
            points = _points(times, [column[number] for column in columns])
            found[number] = replace(found[number], points=tuple(points))
        return found


def _trend(times: Sequence[float], row: Sequence[float]) -> ReadingTrend | None:
    points = _points(times, row)
    if not points:
        return None
    values = [value for _, value in points]
    if len(set(values)) == 1:  # most lasers and ratios
        return ReadingTrend(values[0], values[0], values[0], 0.0 if len(points) >= MIN_TREND_POINTS else None)
    a_week = compute_median_slope(points) * WEEK_S if len(points) >= MIN_TREND_POINTS else None
    return ReadingTrend(median(values), values[0], values[-1], a_week)


def _points(times: Sequence[float], row: Sequence[float]) -> list[tuple[float, float]]:
    """Return the moments at which a reading was told, and what it was."""
    return [(at, value) for at, value in zip(times, row, strict=True) if not isnan(value)]


def _ends(told: PortFacts, name: str) -> tuple[float, ...]:
    """Return the weakest and the strongest lane."""
    lanes = told.module.get(name)
    return (float(min(lanes)), float(max(lanes))) if isinstance(lanes, tuple | list) and lanes else ()
