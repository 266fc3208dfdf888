"""Reads one event log of a BMC since a cursor: only the new entries, where the BMC supports such a query."""

from __future__ import annotations

from dataclasses import dataclass

from assay.adapters.bmc.session import RedfishSession, Resource
from assay.model.errors import AssayError
from assay.model.log_message import replace_unencodable

PAGE_SIZE = 50


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

    def after(self, events: list[dict[str, str]], counted: list[dict[str, str]] | None = None) -> EventLogCursor:
        """Return the cursor after these new events. Only those in `counted` are counted, by default all."""
        levels = [event["severity"] for event in (events if counted is None else counted)]
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


def read_new_entries(bmc: RedfishSession, path: str, cursor: EventLogCursor) -> list[Resource]:
    """Return the entries after the cursor, oldest first. Raises AssayError where they cannot be read."""
    return _entries_after(cursor, _read_entries(bmc, path, cursor))


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
    """Return a LogEntry resource as an event of evidence; properties that it lacks are "".

    Without a message, its id is the message. `part` is the last name in the path of what it is about.
    """
    return {
        "id": replace_unencodable(entry.get("Id", "")),
        "at": replace_unencodable(entry.get("Created") or ""),
        "severity": replace_unencodable(entry.get("Severity") or ""),
        "message": replace_unencodable(entry.get("Message") or entry.get("MessageId") or ""),
        "message_id": replace_unencodable(entry.get("MessageId") or ""),
        "part": replace_unencodable(_find_part(entry)),
    }


def _find_part(entry: Resource) -> str:
    """Return the last name in the path of what an entry is about, "" where it names none."""
    links = entry.get("Links")
    origin = links.get("OriginOfCondition") if isinstance(links, dict) else entry.get("OriginOfCondition")
    path = origin.get("@odata.id") if isinstance(origin, dict) else origin
    return path.rstrip("/").rpartition("/")[2] if isinstance(path, str) else ""
