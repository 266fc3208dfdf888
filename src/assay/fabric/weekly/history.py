"""The stored scans of one fabric in a window of time, one after the other, and when its links went down."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta

from assay.fabric.health.flaps import most_in_window, without_bursts
from assay.fabric.port_facts import FabricEvent
from assay.model.cable import Port
from assay.model.errors import Trouble
from assay.model.evidence import Evidence

DAY = timedelta(days=1)
LINK_DOWN = 329
"""UFM's event for a link that went down; 328 is one that came up."""


def stored(latest: Evidence, get: Callable[[str], Evidence], days: float) -> Iterator[Evidence]:
    """Yield the scans of the last `days` before the newest, newest first: each names the one before by its digest.

    One at a time, since a scan of a large fabric is tens of megabytes. Where one is not kept any more, or is damaged,
    history begins after it.
    """
    scan: Evidence | None = latest
    while scan and latest.at - scan.at <= timedelta(days=days):
        yield scan
        scan = _before(scan, get)


def _before(scan: Evidence, get: Callable[[str], Evidence]) -> Evidence | None:
    digest = scan.read("previous")
    try:
        return get(str(digest.value)) if digest.kind == "value" else None
    except Trouble:
        return None


def most_downs_a_day(counted: Iterable[tuple[datetime, int]], seen: Iterable[datetime]) -> int:
    """Return the most often that a link went down within any 24 hours, by its counters or by the fabric manager."""
    moments = list(counted)
    within = [sum(count for at, count in moments if start <= at < start + DAY) for start, _ in moments]
    return max([*within, most_in_window(seen, DAY)])


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
