"""A BMC's event log since a cursor: only what is new is read, where the BMC lets itself be asked for that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.model.errors import AssayError
from assay.model.log_message import replace_unencodable
from assay.model.reading import ReadingTree, value
from assay.redfish.errors import BmcResourceMissing
from assay.redfish.property_readings import Resource
from assay.redfish.session import RedfishSession

PAGE_SIZE = 50
_HOLDERS = {"managers": "ManagedBy", "chassis": "Chassis"}


@dataclass(frozen=True)
class EventLogCursor:
    """How far a log was read: the newest entry, and how many of each severity were seen by then, ever.

    As text `ID@TIME#CRITICAL,WARNING`. The counts go on when the log is cleared or its oldest entries go, so that
    what a check counts since its last pass is right however the log was kept.
    """

    ident: str = ""
    at: str = ""
    critical: int = 0
    warning: int = 0

    @classmethod
    def parse(cls, text: str) -> EventLogCursor:
        """Return what a text says; a text that is none is where every log begins."""
        head, _, tail = text.rpartition("#")
        ident, _, at = head.partition("@")
        critical, _, warning = tail.partition(",")
        if not (ident and critical.isdecimal() and warning.isdecimal() and len(tail) < 40):
            return cls()
        return cls(ident, at, int(critical), int(warning))

    def __str__(self) -> str:
        return f"{self.ident}@{self.at}#{self.critical},{self.warning}"

    def after(self, events: list[dict[str, str]]) -> EventLogCursor:
        """Return the cursor that stands behind these events."""
        levels = [event["severity"] for event in events]
        ident, at = (events[-1]["id"], events[-1]["at"]) if events else (self.ident, self.at)
        return EventLogCursor(
            ident, at, self.critical + levels.count("Critical"), self.warning + levels.count("Warning")
        )

    def matches(self, entry: Resource) -> bool:
        """Whether an entry is the one that was read last; its time tells it from another of a log that was cleared."""
        return (replace_unencodable(entry.get("Id", "")), replace_unencodable(entry.get("Created") or "")) == (
            self.ident,
            self.at,
        )


def read_event_log(bmc: RedfishSession, system: Resource, since: str = "") -> ReadingTree:
    """Return `events` (new ones, oldest first) and `event_log` (cursor, critical and warning: how many, ever).

    Raises Trouble where the log cannot be read.
    """
    cursor = EventLogCursor.parse(since)
    events = [parse_log_entry(entry) for entry in _entries_after(cursor, _entries(bmc, _log(bmc, system), cursor))]
    now = cursor.after(events)
    counted = {"critical": value(now.critical), "warning": value(now.warning)}
    return {"events": value(events), "event_log": {"cursor": value(str(now)), **counted}}


def _log(bmc: RedfishSession, system: Resource) -> str:
    """Return the path of the log's entries, where this vendor keeps it."""
    for holder in _holders(bmc, system):
        services = bmc.members(bmc.follow(holder, "LogServices", 1)) if "LogServices" in holder else []
        for name in bmc.dialect.event_log:
            for log in services:
                if log.get("Id") == name and "Entries" in log:
                    return str(log["Entries"]["@odata.id"])
    raise BmcResourceMissing(f"no log service of the BMC is called {', '.join(bmc.dialect.event_log)}", where=bmc.where)


def _holders(bmc: RedfishSession, system: Resource) -> Iterator[Resource]:
    for place in bmc.dialect.event_log_at:
        if place == "system":
            yield system
        else:
            for link in system.get("Links", {}).get(_HOLDERS[place], []):
                yield bmc.get(link["@odata.id"])


def _entries(bmc: RedfishSession, path: str, cursor: EventLogCursor) -> list[Resource]:
    """Return the entries from the cursor on, and perhaps older ones, oldest first."""
    if cursor.at and bmc.dialect.log_filter and bmc.has_feature("FilterQuery"):
        try:
            return _oldest_first(bmc.members(bmc.get_with(path, {"$filter": f"Created ge '{cursor.at}'"})))
        except AssayError:  # said to be offered, and refused: read it plainly
            pass
    first = bmc.get(path, 1)
    if not cursor.ident or "Members@odata.nextLink" not in first:
        return _oldest_first(bmc.members(first))
    return _oldest_first(
        _read_backwards_to_cursor(bmc, path, cursor)
        if bmc.has_feature("TopSkipQuery")
        else _read_pages_to_cursor(bmc, first, cursor)
    )


def _read_pages_to_cursor(bmc: RedfishSession, page: Resource, cursor: EventLogCursor) -> list[Resource]:
    """Read page by page; where the newest come first, no further than the cursor."""
    found: list[Resource] = []
    for entries in bmc.pages(page):
        found += entries
        if _newest_first(found) and any(cursor.matches(entry) for entry in entries):
            break
    return found


def _read_backwards_to_cursor(bmc: RedfishSession, path: str, cursor: EventLogCursor) -> list[Resource]:
    """Read backwards, page by page, no further than the cursor."""
    counted = int(bmc.get_with(path, {"$top": "1"}).get("Members@odata.count", 0))
    found: list[Resource] = []
    for end in range(counted, 0, -PAGE_SIZE):
        begin = max(0, end - PAGE_SIZE)
        page = bmc.get_with(path, {"$skip": str(begin), "$top": str(end - begin)})
        entries = page.get("Members", [])
        found = entries + found
        if any(cursor.matches(entry) for entry in entries):
            break
    return found


def _oldest_first(entries: list[Resource]) -> list[Resource]:
    return entries[::-1] if _newest_first(entries) else entries


def _newest_first(entries: list[Resource]) -> bool:
    times = [str(entry.get("Created") or "") for entry in entries]
    return len(times) > 1 and times[0] > times[-1]


def _entries_after(cursor: EventLogCursor, entries: list[Resource]) -> list[Resource]:
    met = next((place for place, entry in enumerate(entries) if cursor.matches(entry)), -1)
    return entries[met + 1 :]


def parse_log_entry(entry: Resource) -> dict[str, str]:
    """Return an entry of a log as evidence has it; what it does not say is ""."""
    return {
        "id": replace_unencodable(entry.get("Id", "")),
        "at": replace_unencodable(entry.get("Created") or ""),
        "severity": replace_unencodable(entry.get("Severity") or ""),
        "message": replace_unencodable(entry.get("Message") or ""),
        "message_id": replace_unencodable(entry.get("MessageId") or ""),
    }
