"""What of a week could not be judged: readings that too few scans have, and ports whose counters do not count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from assay.fabric.weekly.compared_readings import READINGS
from assay.fabric.weekly.week import COUNTERS, FabricWeek, PortWeek
from assay.model.text.text_lists import format_count

COUNTED = "link downs and errors"
"""What is judged by counters."""
CABLING = "discovery of the cables"


@dataclass(frozen=True, slots=True)
class UnjudgedPart:
    """Something that was not judged: `what` in a few words, and `why`."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


def list_stuck_ports(ports: Sequence[PortWeek]) -> tuple[PortWeek, ...]:
    """Return the ports with a counter that stood at its maximum, so that its downs or errors were not counted."""
    return tuple(port for port in ports if port.summary.stuck_counter)


def describe_stuck_port(port: PortWeek, week: FabricWeek) -> str:
    """Return which counter of a port does not count, for how long, and what to do."""
    summary = port.summary
    scans = f" in {summary.stuck_scans} of {week.counted_scans} scans" if summary.stuck_scans else ""
    return f"{port.end}: {summary.stuck_counter} stood at its maximum{scans}: it cannot count, clear it"


def find_unjudged_parts(week: FabricWeek, ports: Sequence[PortWeek]) -> tuple[UnjudgedPart, ...]:
    """Return what was not judged, nothing where the whole week was not (`week.doubt` says why)."""
    return () if week.doubt else tuple(_list_parts(week, ports))


def _list_parts(week: FabricWeek, ports: Sequence[PortWeek]) -> Iterator[UnjudgedPart]:
    if why := week.find_unread(COUNTERS):
        yield UnjudgedPart(COUNTED, why)
    names: dict[str, list[str]] = {}
    for reading in READINGS:
        if why := week.find_unread(reading.key):
            names.setdefault(why, []).append(reading.name)
    for why, unread in names.items():
        yield UnjudgedPart(", ".join(unread), why)
    if week.discoveries and not week.whole_discoveries:
        yield UnjudgedPart(CABLING, week.incomplete_discoveries)
    if stuck := len(list_stuck_ports(ports)):
        yield UnjudgedPart(
            f"{COUNTED} of {format_count(stuck, 'port')}", "a counter stood at its maximum: it cannot count, clear it"
        )
