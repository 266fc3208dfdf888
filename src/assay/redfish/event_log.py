"""Reads a BMC's event log since a cursor: only the new entries, where the BMC supports such a query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.model.errors import AssayError
from assay.model.log_message import replace_unencodable
from assay.model.reading import ReadingTree, value
from assay.redfish.errors import BmcResourceMissing
from assay.redfish.session import RedfishSession, Resource

PAGE_SIZE = 50
_HOLDERS = {"managers": "ManagedBy", "chassis": "Chassis"}


@dataclass(frozen=True)
class EventLogCursor:
    """How far a log was read: the newest entry (its id and time), and how many entries of each severity ever came.

    As text `ID@TIME#CRITICAL,WARNING`. The counts never fall, also where the log is cleared or drops its oldest
    entries. So a check can count entries since its last pass.
    """

    ident: str = ""
    at: str = ""
    critical: int = 0
    warning: int = 0

    @classmethod
    def parse(cls, text: str) -> EventLogCursor:
        """Parse a cursor's text; any other text gives the cursor before the first entry."""
        head, _, tail = text.rpartition("#")
        ident, _, at = head.partition("@")
        critical, _, warning = tail.partition(",")
        if not (ident and critical.isdecimal() and warning.isdecimal() and len(tail) < 40):
            return cls()
        return cls(ident, at, int(critical), int(warning))

    def __str__(self) -> str:
        return f"{self.ident}@{self.at}#{self.critical},{self.warning}"

    def after(self, events: list[dict[str, str]]) -> EventLogCursor:
        """Return the cursor after these new events."""
        levels = [event["severity"] for event in events]
        ident, at = (events[-1]["id"], events[-1]["at"]) if events else (self.ident, self.at)
        return EventLogCursor(
            ident, at, self.critical + levels.count("Critical"), self.warning + levels.count("Warning")
        )

    def matches(self, entry: Resource) -> bool:
        """Return whether an entry is the one that was read last. A cleared log reuses ids, so its time counts too."""
        return (replace_unencodable(entry.get("Id", "")), replace_unencodable(entry.get("Created") or "")) == (
            self.ident,
            self.at,
        )


def read_event_log(bmc: RedfishSession, system: Resource, since: str = "") -> ReadingTree:
    """Return the new `events`, oldest first, and `event_log`: the cursor, and the counts `critical` and `warning`.

    Raises AssayError where the log cannot be read.
    """
    cursor = EventLogCursor.parse(since)
    entries = _read_entries(bmc, _find_log(bmc, system), cursor)
    events = [parse_log_entry(entry) for entry in _entries_after(cursor, entries)]
    now = cursor.after(events)
    counts = {"critical": value(now.critical), "warning": value(now.warning)}
    return {"events": value(events), "event_log": {"cursor": value(str(now)), **counts}}


def _find_log(bmc: RedfishSession, system: Resource) -> str:
    """Return the path of the log's entries, at the place that this BMC's dialect names."""
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


def _read_entries(bmc: RedfishSession, path: str, cursor: EventLogCursor) -> list[Resource]:
    """Return the entries from the cursor on, oldest first; older ones may be among them."""
    if cursor.at and bmc.dialect.log_filter and bmc.has_feature("FilterQuery"):
        try:
            return _oldest_first(bmc.members(bmc.get_with(path, {"$filter": f"Created ge '{cursor.at}'"})))
        except AssayError:  # announced but refused: read without the filter
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
    """Read page by page; where the newest entries come first, stop at the cursor."""
    found: list[Resource] = []
    for entries in bmc.pages(page):
        found += entries
        if _newest_first(found) and any(cursor.matches(entry) for entry in entries):
            break
    return found


def _read_backwards_to_cursor(bmc: RedfishSession, path: str, cursor: EventLogCursor) -> list[Resource]:
    """Read backwards from the end, page by page, and stop at the cursor."""
    count = int(bmc.get_with(path, {"$top": "1"}).get("Members@odata.count", 0))
    found: list[Resource] = []
    for end in range(count, 0, -PAGE_SIZE):
        start = max(0, end - PAGE_SIZE)
        page = bmc.get_with(path, {"$skip": str(start), "$top": str(end - start)})
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
    last_seen = next((index for index, entry in enumerate(entries) if cursor.matches(entry)), -1)
    return entries[last_seen + 1 :]


def parse_log_entry(entry: Resource) -> dict[str, str]:
    """Return a LogEntry resource as an event of evidence; properties that it lacks are ""."""
    return {
        "id": replace_unencodable(entry.get("Id", "")),
        "at": replace_unencodable(entry.get("Created") or ""),
        "severity": replace_unencodable(entry.get("Severity") or ""),
        "message": replace_unencodable(entry.get("Message") or ""),
        "message_id": replace_unencodable(entry.get("MessageId") or ""),
    }
