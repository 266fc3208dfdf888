"""A week of a fabric: a few numbers for each port, whatever the number of scans. Plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from assay.model.facts import fact, frozen, shown
from assay.model.specs.fabric.cable import Cable, CableEnd, PortId
from assay.model.text.lists import format_count

DAYS = 7.0
WEEK_S = DAYS * 86_400
COUNTERS = "counters"
"""The kind of reading that downs and errors come from."""
MIN_SCANS = 8
MIN_HOURS = 48.0
"""With fewer scans, or over less time, a week is not judged: two days show only the difference of day and night."""


@fact
class ReadingTrend:
    """One reading over the week: its median, its first and last value (None: the median), and its drift per week.

    `per_week` is None if too few scans read it. `noise` is its standard error, by the scatter of the readings of
    `scans` scans; both are 0 if that is not known, or does not matter.
    """

    median: float
    first: float | None = shown(omit=True, default=None)
    last: float | None = shown(omit=True, default=None)
    per_week: float | None = shown(omit=True, default=None)
    noise: float = shown(omit=True, default=0.0)
    scans: int = shown(omit=True, default=0)

    @property
    def ends(self) -> tuple[float, float]:
        """The first and the last value."""
        return self.median if self.first is None else self.first, self.median if self.last is None else self.last


@fact
class PortWeekSummary:
    """The readings of one port over a week. Counters are of the whole week, the module as it was read last.

    - `downs_a_day`: the most link downs within any 24 hours.
    - `down_scans`, `error_scans`: before how many of the scans the link went down, or counted errors.
    - `stuck_counter`: a counter of downs or errors that stood at its maximum, so that nothing shows in it, or "": in
      the newest scan, or in half of the scans. `stuck_scans`: in how many scans it did.
    """

    errors: int = shown(omit=True, default=0)
    downs_a_day: int = shown(omit=True, default=0)
    down_scans: int = shown(omit=True, default=0)
    error_scans: int = shown(omit=True, default=0)
    stuck_counter: str = shown(omit=True, default="")
    stuck_scans: int = shown(omit=True, default=0)
    vendor: str = shown(omit=True, default="")
    part: str = shown(omit=True, default="")
    serial: str = shown(omit=True, default="")
    trends: Mapping[str, ReadingTrend] = shown(omit=True, default_factory=dict)

    def median(self, key: str) -> float | None:
        """Return the median of a reading, None if no scan read it."""
        trend = self.trends.get(key)
        return trend.median if trend else None


EMPTY_SUMMARY = PortWeekSummary()
"""The summary of a port that was not in the design when the week was aggregated."""


@fact
class FabricWeek:
    """The scans of one fabric from `start` to `end`.

    - `complete_scans`: how many of the `scans` read counters without a problem. `gap_h`: the longest time without
      such a scan, up to the moment of aggregation.
    - `counted_h`: over how many hours errors were counted.
    - `newest`: the digest of the newest scan.
    - `reads_ports`: whether any scan ran a command that describes ports. `command_failure`: why one of them gave
      nothing, or "". `unknown_reasons`: all reasons why some scan could not read something.
    - `read_scans`: how many scans read each kind of reading, of most ports: `COUNTERS`, and the keys of READINGS.
      `growth_scans`: how many could tell how counters grew. `answered_scans`: in how many every command gave
      something.
    - `discoveries`: how many scans discovered the cables, `whole_discoveries`: how many of these lack nothing.
      `discovery_failure`: why the newest of the others was not whole, or "".
    - `manager_moves`: when another subnet manager answered than in the scan before: the time (ISO 8601), the GUID of
      the port before and now.
    """

    fabric: str
    start: datetime
    end: datetime
    scans: int
    complete_scans: int
    gap_h: float
    counted_h: float
    newest: str = ""
    reads_ports: bool = True
    command_failure: str = ""
    unknown_reasons: tuple[str, ...] = ()
    ports: Mapping[PortId, PortWeekSummary] = shown(default_factory=dict)
    manager_moves: tuple[tuple[str, str, str], ...] = ()
    read_scans: Mapping[str, int] = shown(default_factory=dict)
    growth_scans: int = 0
    answered_scans: int = 0
    discoveries: int = 0
    whole_discoveries: int = 0
    discovery_failure: str = ""

    @property
    def incomplete_discoveries(self) -> str:
        """How many discoveries of the cables were not whole, and why the newest of them, "" if all were."""
        count = self.discoveries - self.whole_discoveries
        return f"{count} of {self.discoveries} were incomplete: {self.discovery_failure}" if count else ""

    @property
    def hours(self) -> float:
        """Hours from the first scan to the last."""
        return (self.end - self.start).total_seconds() / 3600

    @property
    def has_enough_history(self) -> bool:
        """Whether the fabric was first scanned long enough ago that scans can be missing."""
        return max(self.hours, self.gap_h) >= MIN_HOURS

    @property
    def doubt(self) -> tuple[str, str] | None:
        """Why the week's ports cannot be judged: `unsupported` or `failed`, and a reason. None if they can."""
        if not self.reads_ports:
            return "unsupported", next(iter(self.unknown_reasons), "no command describes the ports")
        if self.scans < MIN_SCANS or self.hours < MIN_HOURS:
            scans = format_count(self.scans, "scan")
            needed = f"a week needs {MIN_SCANS} scans over {MIN_HOURS:.0f} h"
            return "unsupported", f"{scans} over {self.hours:.0f} h: {needed}"
        if max([self.complete_scans, *self.read_scans.values()]) < MIN_SCANS:
            reason = self.command_failure or "they read no counters"
            return "failed", f"{self.complete_scans} of {self.scans} scans were complete: {reason}"
        return None

    def find_unread(self, kind: str) -> str:
        """Return why too few scans read a kind of reading, "" if enough did, or if no tool of the site reads it.

        Tools that answered in enough scans, or read other things of the modules, and never read it, do not read it at
        all. Counters are always needed.
        """
        count = self.read_scans.get(kind, 0)
        others = any(scans for other, scans in self.read_scans.items() if other != COUNTERS)
        is_foreign = kind != COUNTERS and not count and (others or self.answered_scans >= MIN_SCANS)
        if count >= MIN_SCANS or is_foreign:
            return ""
        reason = self.command_failure or "no command reads it"
        return f"{count} of {self.scans} scans read it, {MIN_SCANS} are needed: {reason}"


@frozen
class PortWeek:
    """One designed port over the week: its place, the far end, its rail, and its summary.

    `counted_h` is over how many hours its errors were counted.
    """

    end: CableEnd
    far: CableEnd
    rail: int | None
    summary: PortWeekSummary
    counted_h: float

    @property
    def side(self) -> str:
        """What kind of port it is, in words."""
        if self.end.node:
            return "adapters"
        return "leaf ports to nodes" if self.far.node else "ports between switches"

    @property
    def errors_per_day(self) -> float | None:
        """Errors per day, None if nothing was counted."""
        return self.summary.errors * 24 / self.counted_h if self.counted_h else None


def list_port_weeks(cables: Sequence[Cable], rails: Mapping[str, int], week: FabricWeek) -> list[PortWeek]:
    """Return both ports of each cable. `rails` has the rail of each adapter by its GUID.

    A link between switches is on the rail of its leaf, if all of that leaf's adapters are on one rail.
    """
    rail_of = {**_find_switch_rails(cables, rails), **rails}
    return [
        PortWeek(
            end,
            far,
            rail_of.get(end.guid, rail_of.get(far.guid)),
            week.ports.get(end.port_id, EMPTY_SUMMARY),
            week.counted_h if end.port_id in week.ports else 0.0,
        )
        for cable in cables
        for end, far in ((cable.a, cable.b), (cable.b, cable.a))
    ]


def _find_switch_rails(cables: Iterable[Cable], rails: Mapping[str, int]) -> dict[str, int]:
    rails_of: dict[str, set[int]] = {}
    for cable in cables:
        for end, far in ((cable.a, cable.b), (cable.b, cable.a)):
            if end.guid in rails:
                rails_of.setdefault(far.guid, set()).add(rails[end.guid])
    return {guid: min(numbers) for guid, numbers in rails_of.items() if len(numbers) == 1}
