"""Aggregates the stored scans of a week into a few numbers for each port.

Scans are read one at a time, newest first, so that many scans need no more memory than one.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from math import isnan, nan
from statistics import median

from assay.fabric.discovery import PortFacts
from assay.fabric.health import counters
from assay.fabric.health.counters import PortGrowth
from assay.fabric.health.stored_scan import FabricScan, read_scan
from assay.fabric.scan import list_discovery_problems
from assay.fabric.weekly.compared_readings import READINGS, ComparedReading
from assay.fabric.weekly.week import COUNTERS, DAYS, WEEK_S, FabricWeek, PortWeekSummary, ReadingTrend
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.peer_statistics import compute_median_slope, compute_slope_noise
from assay.model.specs.fabric.cable import Cable, PortId

HEAD = re.compile(r"(?:\s*#[^\n]*(?:\n|$))*")
"""The comments with which ibnetdiscover begins: they name the time."""
MIN_TREND_POINTS = 4
"""With fewer scans there is no drift."""
ERRORS = (counters.SYMBOL, counters.RECOVERY, *counters.LINK_ERRORS)
JUDGED_COUNTERS = (counters.DOWNED, *ERRORS)
"""What a week is judged by. Another counter at its maximum, such as PortXmitDiscards, hides nothing of it."""
DAY = timedelta(days=1)


def aggregate_week(
    fabric: str,
    cables: Sequence[Cable],
    latest: EvidenceDocument,
    get: Callable[[str], EvidenceDocument],
    now: datetime,
    days: float = DAYS,
) -> FabricWeek:
    """Aggregate the scans of the last `days` before the newest one. `get` returns a stored document by its digest.

    `now` is the moment of aggregation. It shows how long the fabric has not been scanned.
    """
    aggregator = _WeekAggregator(cables)
    for document in iter_stored_scans(latest, get, days):
        aggregator.add(document)
    return aggregator.finish(fabric, latest.digest(), now)


def iter_stored_scans(
    latest: EvidenceDocument, get: Callable[[str], EvidenceDocument], days: float
) -> Iterator[EvidenceDocument]:
    """Yield the scans of the last `days` before the newest, newest first. Each names its predecessor by digest.

    The caller holds one at a time, since a scan of a large fabric is tens of megabytes. A scan that is no longer
    stored, or damaged, ends the history.
    """
    scan: EvidenceDocument | None = latest
    while scan and latest.at - scan.at <= timedelta(days=days):
        yield scan
        previous = scan.read("previous")
        try:
            scan = get(str(previous.value)) if previous.kind == "value" else None
        except AssayError:
            return


class _WeekAggregator:
    """The numbers of the scans so far. Ports are numbered: each reading of a scan is one array over all ports."""

    def __init__(self, cables: Sequence[Cable]) -> None:
        ends = [(end.port_id, cable.rate) for cable in cables for end in cable.ends]
        self._number_of = {port: number for number, (port, _) in enumerate(ends)}
        self._rates = [rate for _, rate in ends]
        self._times: list[datetime] = []
        self._complete: list[datetime] = []
        self._start: datetime | None = None
        self._columns: dict[str, list[array[float]]] = {reading.key: [] for reading in READINGS}
        self._newest_facts: dict[int, PortFacts] = {}
        self._errors: defaultdict[int, int] = defaultdict(int)
        self._error_scans: defaultdict[int, int] = defaultdict(int)
        self._downs: defaultdict[int, list[tuple[datetime, int]]] = defaultdict(list)
        self._stuck, self._discoveries = StuckCounters(), DiscoveryCount()
        self._read_scans = {COUNTERS: 0}
        self._growth_scans, self._answered_scans = 0, 0
        self._counted_s = 0.0
        self._reads_ports = False
        self._command_failure = ""
        self._unknown_reasons: dict[str, int] = defaultdict(int)
        self._managers: list[tuple[datetime, str]] = []

    def add(self, document: EvidenceDocument) -> None:
        """Add one scan. Scans come newest first."""
        scan = read_scan(document)
        self._add_problems(document, scan)
        self._discoveries.add(document)
        self._add_readings(scan.facts)
        self._add_counters(scan)
        self._times.append(scan.at)
        self._start = scan.since or scan.at
        self._managers += [(scan.at, scan.manager.guid)] if scan.manager else []

    def _add_problems(self, document: EvidenceDocument, scan: FabricScan) -> None:
        problems = [reason.partition("\n")[0] for reason in (*scan.failed_commands.values(), *scan.problems)]
        if "unsupported" not in document.channels.get("ports", {"unsupported": ""}):
            self._reads_ports = True
            self._command_failure = self._command_failure or next(iter(problems), "")
        if scan.has_counters and not scan.problems:
            self._complete.append(scan.at)
        self._answered_scans += not scan.unread_commands
        for reason in (*problems, *([scan.growth_unknown_reason] if scan.growth_unknown_reason else [])):
            self._unknown_reasons[reason] += 1

    def _add_readings(self, facts: Mapping[PortId, PortFacts]) -> None:
        columns = [(array("d", [nan]) * len(self._rates), reading.of) for reading in READINGS]
        for port, port_facts in facts.items():
            number = self._number_of.get(port)
            if number is None or not (port_facts.module or port_facts.ber or port_facts.fec_bins):
                continue
            self._newest_facts.setdefault(number, port_facts)
            rate = self._rates[number]
            for column, read in columns:
                if (value := read(port_facts, rate)) is not None:
                    column[number] = value
        for reading, (column, _) in zip(READINGS, columns, strict=True):
            self._columns[reading.key].append(column)

    def _add_counters(self, scan: FabricScan) -> None:
        self._counted_s += scan.seconds if scan.has_counters else 0.0
        self._read_scans[COUNTERS] += scan.has_counters
        self._growth_scans += scan.has_counters and scan.since is not None
        for port, growth in scan.growths.items():
            number = self._number_of.get(port)
            if number is None:
                continue
            errors = sum(growth.find_growth(name).count for name in ERRORS)
            self._errors[number] += errors
            self._error_scans[number] += bool(errors)
            if downs := growth.find_growth(counters.DOWNED).count:
                self._downs[number].append((scan.at, downs))
            if (facts := scan.facts.get(port)) and facts.saturated:
                self._stuck.add(number, growth, is_newest=not self._times)

    def finish(self, fabric: str, newest: str, now: datetime) -> FabricWeek:
        """Return the week of all scans. `newest` is the digest of the newest one."""
        trends = {reading.key: self._make_trends(reading) for reading in READINGS}
        scans = len(self._times)
        times = [now, *self._complete, self._start or now]
        longest_gap = max(later - earlier for later, earlier in pairwise(times))
        manager_moves = tuple(
            (at.isoformat(), before, after)
            for (_, before), (at, after) in pairwise(reversed(self._managers))
            if before != after
        )
        return FabricWeek(
            fabric,
            self._start or now,
            self._times[0],
            scans,
            len(self._complete),
            longest_gap.total_seconds() / counters.HOUR,
            self._counted_s / counters.HOUR,
            newest,
            self._reads_ports,
            self._command_failure,
            tuple(f"{reason} ({count} of {scans} scans)" for reason, count in self._unknown_reasons.items()),
            {port: self._summarise_port(port, number, trends) for port, number in self._number_of.items()},
            manager_moves,
            self._read_scans,
            self._growth_scans,
            self._answered_scans,
            len(self._discoveries.problems),
            self._discoveries.problems.count(""),
            next(filter(None, self._discoveries.problems), ""),
        )

    def _summarise_port(
        self,
        port: PortId,
        number: int,
        trends: Mapping[str, Mapping[int, ReadingTrend]],
    ) -> PortWeekSummary:
        facts = self._newest_facts.get(number) or PortFacts(port)
        stuck, stuck_scans = self._stuck.find(number, self._growth_scans)
        return PortWeekSummary(
            errors=self._errors.get(number, 0),
            down_scans=len(self._downs.get(number, ())),
            error_scans=self._error_scans.get(number, 0),
            downs_a_day=count_most_downs_a_day(self._downs.get(number, ())),
            stuck_counter=stuck,
            stuck_scans=stuck_scans,
            vendor=str(facts.module.get("vendor", "")),
            part=str(facts.module.get("part", "")),
            serial=str(facts.module.get("serial", "")),
            trends={key: of_port[number] for key, of_port in trends.items() if number in of_port},
        )

    def _make_trends(self, reading: ComparedReading) -> dict[int, ReadingTrend]:
        """Return each port's trend of a reading. A scan read it if half of the ports gave it that ever do."""
        times = [at.timestamp() for at in reversed(self._times)]
        columns = self._columns.pop(reading.key)[::-1]
        rows = zip(*columns, strict=True)
        trends = {number: trend for number, row in enumerate(rows) if (trend := make_trend(times, row, reading))}
        read = (len(column) - sum(map(isnan, column)) for column in columns)
        self._read_scans[reading.key] = sum(0 < len(trends) <= 2 * ports for ports in read)
        return trends


def count_most_downs_a_day(counted: Sequence[tuple[datetime, int]]) -> int:
    """Return the most link downs within any 24 hours. `counted` are (time of the scan, downs since the scan before)."""
    within = (sum(count for at, count in counted if start <= at < start + DAY) for start, _ in counted)
    return max(within, default=0)


def make_trend(times: Sequence[float], row: Sequence[float], reading: ComparedReading) -> ReadingTrend | None:
    """Return the trend of the values at these times, None if all are nan. What gets worse within one step drifts 0."""
    points = list_points(times, row)
    if not points:
        return None
    values = [value for _, value in points]
    if len(set(values)) == 1:  # most lasers and ratios
        return ReadingTrend(values[0], per_week=0.0 if len(points) >= MIN_TREND_POINTS else None)
    if len(points) < MIN_TREND_POINTS:
        return ReadingTrend(median(values), values[0], values[-1])
    slope = compute_median_slope(points)
    seen = slope * reading.worse * (points[-1][0] - points[0][0])
    if min(seen, max(values) - min(values)) <= reading.resolution:
        return ReadingTrend(
            median(values), values[0], values[-1], min(slope * reading.worse, 0.0) * reading.worse * WEEK_S
        )
    noise = compute_slope_noise(points, slope) * WEEK_S
    return ReadingTrend(median(values), values[0], values[-1], slope * WEEK_S, noise, len(points))


def list_points(times: Sequence[float], row: Sequence[float]) -> list[tuple[float, float]]:
    """Return the times at which a reading was read, and its values."""
    return [(at, value) for at, value in zip(times, row, strict=True) if not isnan(value)]


class StuckCounters:
    """In how many scans each counter of each port stood at its maximum. Ports are numbered; scans come newest first."""

    def __init__(self) -> None:
        self._scans: defaultdict[int, Counter[str]] = defaultdict(Counter)
        self._newest: dict[int, str] = {}

    def add(self, port: int, growth: PortGrowth, *, is_newest: bool) -> None:
        """Add the growth of a port with a counter at its maximum."""
        for name in JUDGED_COUNTERS:
            if growth.find_growth(name).stuck:
                self._scans[port][name] += 1
                if is_newest:
                    self._newest.setdefault(port, name)

    def find(self, port: int, scans: int) -> tuple[str, int]:
        """Return the counter that does not count, and in how many of all `scans` it did not; "" and 0 for none.

        It is one that stands at its maximum now, or did in half of the scans.
        """
        own = self._scans.get(port)
        if not own:
            return "", 0
        longest, most = own.most_common(1)[0]
        name = self._newest.get(port) or (longest if 2 * most >= scans else "")
        return name, own[name]


class DiscoveryCount:
    """Why each discovery of the cables was not whole, "" for one that was, newest first.

    A fabric at rest gives the same text again and again, which is read once.
    """

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._known: dict[int, str] = {}

    def add(self, document: EvidenceDocument) -> None:
        """Add one scan. One without a discovery does not count."""
        text = document.read("discovery", "text")
        if text.kind not in ("value", "failed"):
            return
        known = text.kind == "value"
        self.problems.append(self._find_problem(document, str(text.value or "")) if known else text.reason)

    def _find_problem(self, document: EvidenceDocument, text: str) -> str:
        head = HEAD.match(text)
        same = hash((text[head.end() if head else 0 :], document.read("discovery", "stderr").value))
        if same not in self._known:
            self._known[same] = next(iter(list_discovery_problems(document)), "").partition("\n")[0]
        return self._known[same]
