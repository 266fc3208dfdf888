"""A week of a fabric in few numbers a port: what all its scans told, whatever their number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from assay.model.fabric.ports_and_cables import Cable, CableEnd, PortId

DAYS = 7.0
WEEK_S = DAYS * 86_400
MIN_SCANS = 8
MIN_HOURS = 48.0
"""With fewer scans, or over less time, nothing can be told of a week: two days show what only day and night do."""


@dataclass(frozen=True, slots=True)
class ReadingTrend:
    """One reading through the week: its median, its first and last value, and by how much it creeps in a week.

    `a_week` is None where too few scans told it. `points` (seconds since the epoch, value) are kept of the steepest.
    """

    usual: float
    first: float
    last: float
    a_week: float | None = None
    points: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class PortWeekSummary:
    """What a week's scans told of one port. Counters are of the whole week; a module is as it was told last.

    `stuck` is a counter that stood at its end already, so that nothing shows in it. `ber` is the ratio that counts at
    the link's speed, by its kind. `rx` and `tx` are the weakest and the strongest lane in dBm, empty where unread.
    """

    errors: int = 0
    symbol_errors: int = 0
    downs_a_day: int = 0
    stuck: str = ""
    ber: Mapping[str, float] = field(default_factory=dict)
    rx: tuple[float, ...] = ()
    tx: tuple[float, ...] = ()
    vendor: str = ""
    part: str = ""
    serial: str = ""
    trends: Mapping[str, ReadingTrend] = field(default_factory=dict)

    @property
    def batch(self) -> str:
        """The start of the module's serial number, which has year and week of its making (`MT2447`)."""
        return self.serial[:6]

    def usual(self, key: str) -> float | None:
        """Return the median of a reading, None where it was never read."""
        trend = self.trends.get(key)
        return trend.usual if trend else None


EMPTY_SUMMARY = PortWeekSummary()
"""What is told of a port that was not designed yet when the week was gathered."""


@dataclass(frozen=True)
class FabricWeek:
    """The scans of one fabric from `start` to `end`.

    `whole` of its `scans` counted and were read without a problem. `gap_h` is the longest time without such a scan, up
    to the moment of gathering. `counted_h` is how long errors were counted. `asked`: somebody was asked about ports;
    `silent` says why a tool gave nothing, `unseen` all that some scan could not tell. `newest` is its digest.
    """

    fabric: str
    start: datetime
    end: datetime
    scans: int
    whole: int
    gap_h: float
    counted_h: float
    newest: str = ""
    asked: bool = True
    silent: str = ""
    unseen: tuple[str, ...] = ()
    ports: Mapping[PortId, PortWeekSummary] = field(default_factory=dict)

    @property
    def hours(self) -> float:
        """From its first scan to its last."""
        return (self.end - self.start).total_seconds() / 3600

    @property
    def has_enough_history(self) -> bool:
        """Whether the fabric was first scanned so long ago that scans can be missed."""
        return max(self.hours, self.gap_h) >= MIN_HOURS

    @property
    def doubt(self) -> tuple[str, str] | None:
        """Why nothing can be told of its ports: `unsupported` or `failed`, and a reason. None where it can."""
        if not self.asked:
            return "unsupported", next(iter(self.unseen), "nobody was asked about ports")
        if self.scans < MIN_SCANS or self.hours < MIN_HOURS:
            tell = "scan over 0 h tells" if self.scans == 1 else f"scans over {self.hours:.0f} h tell"
            return "unsupported", f"{self.scans} {tell} too little: a week takes {MIN_SCANS} over {MIN_HOURS:.0f} h"
        if self.whole < MIN_SCANS:
            return "failed", f"{self.whole} of {self.scans} scans were whole: {self.silent or 'they counted nothing'}"
        return None


@dataclass(frozen=True, slots=True)
class PortWeek:
    """One designed port through the week: where it is, on which rail, and what was told of it.

    `counted_h` is how long its errors were counted.
    """

    end: CableEnd
    far: CableEnd
    rail: int | None
    summary: PortWeekSummary
    counted_h: float

    @property
    def errors_per_day(self) -> float | None:
        """Errors a day, None where nothing was counted."""
        return self.summary.errors * 24 / self.counted_h if self.counted_h else None


def list_port_weeks(cables: Sequence[Cable], rails: Mapping[str, int], week: FabricWeek) -> list[PortWeek]:
    """Return both ports of each cable. `rails` has the rail of each adapter by its GUID.

    A link between switches is on the rail of its leaf, where all of that leaf's adapters are on one.
    """
    known = {**_rails_of_switches(cables, rails), **rails}
    seen = week.ports
    return [
        PortWeek(
            end,
            far,
            known.get(end.guid, known.get(far.guid)),
            seen.get(end.port_id, EMPTY_SUMMARY),
            week.counted_h if end.port_id in seen else 0.0,
        )
        for cable in cables
        for end, far in ((cable.a, cable.b), (cable.b, cable.a))
    ]  # fmt: skip


def _rails_of_switches(cables: Iterable[Cable], rails: Mapping[str, int]) -> dict[str, int]:
    found: dict[str, set[int]] = {}
    for cable in cables:
        for end, far in ((cable.a, cable.b), (cable.b, cable.a)):
            if end.guid in rails:
                found.setdefault(far.guid, set()).add(rails[end.guid])
    return {guid: min(numbers) for guid, numbers in found.items() if len(numbers) == 1}
