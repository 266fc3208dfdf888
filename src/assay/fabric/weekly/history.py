"""The stored scans of one fabric in a window of time, and what they say of each port through it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median

from assay.fabric.health import counters
from assay.fabric.health.flaps import most_in_window, without_bursts
from assay.fabric.health.ports import PortHealth, ports_of
from assay.fabric.health.scanned import Scanned
from assay.fabric.port_facts import FabricEvent
from assay.model.cable import Cable, End, Port
from assay.model.errors import Trouble
from assay.model.evidence import Evidence

ERRORS = (counters.SYMBOL, counters.RECOVERY, *counters.LINK_ERRORS)
DAY = timedelta(days=1)
LINK_DOWN = 329
"""UFM's event for a link that went down; 328 is one that came up."""


@dataclass(frozen=True, slots=True)
class PortWeek:
    """One port through the window: where it is, on which rail, and its readings scan by scan, oldest first.

    `went_down` is when a fabric manager saw its link go down, where one was asked.
    """

    end: End
    far: End
    rail: int | None
    seen: tuple[tuple[datetime, PortHealth], ...]
    went_down: tuple[datetime, ...] = ()

    @property
    def last(self) -> PortHealth:
        """The newest reading."""
        return self.seen[-1][1]

    @property
    def hours(self) -> float:
        """How long it was counted."""
        return sum(one.grown.seconds for _, one in self.seen) / counters.HOUR

    def total(self, *names: str) -> int:
        """Return how much counters grew in all; at least that, where one stopped at its end."""
        return sum(one.grown.of(name).count for _, one in self.seen for name in names)

    @property
    def errors(self) -> int:
        """Errors of the link in the whole window."""
        return self.total(*ERRORS)

    @property
    def errors_per_day(self) -> float | None:
        """Errors a day, None where nothing was counted."""
        return self.errors * 24 / self.hours if self.hours else None

    @property
    def most_downs_a_day(self) -> int:
        """The most often that the link went down within any 24 hours, by its counters or by the fabric manager."""
        moments = [(at, one.downs().count) for at, one in self.seen]
        within = [sum(count for at, count in moments if start <= at < start + DAY) for start, _ in moments]
        return max(*within, most_in_window(self.went_down, DAY), 0)

    def series(self, read: Callable[[PortHealth], float | None]) -> list[tuple[datetime, float]]:
        """Return one reading through the window; scans that lack it are left out."""
        return [(at, value) for at, one in self.seen if (value := read(one)) is not None]

    def usual(self, read: Callable[[PortHealth], float | None]) -> float | None:
        """Return the median of one reading through the window, None where it was never read."""
        values = [value for _, value in self.series(read)]
        return median(values) if values else None

    @property
    def batch(self) -> str:
        """The start of the module's serial number, which has year and week of its making (`MT2447`)."""
        return self.last.optics.serial[:6]


def stored(latest: Evidence | None, get: Callable[[str], Evidence], days: float) -> list[Evidence]:
    """Return the scans of the last `days` before the newest, oldest first: each names the one before by its digest.

    Where one is not kept any more, or is damaged, history begins after it.
    """
    found: list[Evidence] = []
    scan = latest
    while scan and latest and latest.at - scan.at <= timedelta(days=days):
        found.append(scan)
        scan = _before(scan, get)
    return found[::-1]


def _before(scan: Evidence, get: Callable[[str], Evidence]) -> Evidence | None:
    digest = scan.read("previous")
    try:
        return get(str(digest.value)) if digest.kind == "value" else None
    except Trouble:
        return None


def weeks(cables: Sequence[Cable], rails: dict[str, int], scans: Iterable[Scanned]) -> list[PortWeek]:
    """Return both ports of each cable through the scans. `rails` has the rail of each adapter by its GUID.

    A link between switches is on the rail of its leaf, where all of that leaf's adapters are on one.
    """
    of_switches = _rails_of_switches(cables, rails)
    looked = list(scans)
    every = [(scan.at, ports_of(cables, scan)) for scan in looked]
    downs = link_downs(one for scan in looked for one in scan.events)
    known = rails | of_switches
    return [
        PortWeek(
            one.end, one.far, known.get(one.end.guid, known.get(one.far.guid)),
            tuple((at, ports[number]) for at, ports in every), tuple(downs.get(one.end.at, ())),
        )
        for number, one in enumerate(every[-1][1] if every else [])
    ]  # fmt: skip


def link_downs(events: Iterable[FabricEvent]) -> dict[Port, list[datetime]]:
    """Return when a fabric manager saw each port's link go down, each time once, without bursts.

    Very many links at one moment are a reboot or an outage of power, and no flapping of any of them.
    """
    seen = {(moment, one.ports) for one in events if one.code == LINK_DOWN and (moment := _moment(one.at))}
    kept = set(without_bursts([moment for moment, _ in seen]))
    found: dict[Port, list[datetime]] = defaultdict(list)
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


def _rails_of_switches(cables: Iterable[Cable], rails: dict[str, int]) -> dict[str, int]:
    found: dict[str, set[int]] = {}
    for cable in cables:
        for end, far in ((cable.a, cable.b), (cable.b, cable.a)):
            if end.guid in rails:
                found.setdefault(far.guid, set()).add(rails[end.guid])
    return {guid: min(numbers) for guid, numbers in found.items() if len(numbers) == 1}
