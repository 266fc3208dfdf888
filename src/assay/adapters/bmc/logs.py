"""Reads every event log of a BMC that its dialect names: of systems, managers and chassis. Each log fails alone.

Some services show one store as several logs (OpenBMC's SEL and EventLog): an entry with the id, time and severity of
one that another log has shown is that entry. Of each log only the entries after a cursor are read, where the BMC
supports such a query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, NamedTuple

from assay.adapters.bmc.errors import BmcResourceMissing
from assay.adapters.bmc.resource import read_branch
from assay.adapters.bmc.session import RedfishSession, Resource
from assay.adapters.bmc.systems import read_link_paths
from assay.model.errors import AssayError
from assay.model.log_message import replace_unencodable
from assay.model.reading import ReadingTree, failed, value

PAGE_SIZE = 50
Event = dict[str, str]
_ROOT = "/redfish/v1/"


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
    entries = _read_entries(bmc, path, cursor)
    last_seen = next((index for index, entry in enumerate(entries) if cursor.matches(entry)), -1)
    return entries[last_seen + 1 :]


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
    newest: list[Resource] = []
    for entries in bmc.pages(page):
        newest += entries
        if _newest_first(newest) and any(cursor.matches(entry) for entry in entries):
            break
    return newest


def _read_backwards_to_cursor(bmc: RedfishSession, path: str, cursor: EventLogCursor) -> list[Resource]:
    """Read backwards from the end, page by page, and stop at the cursor."""
    count = int(bmc.get_with(path, {"$top": "1"}).get("Members@odata.count", 0))
    newest: list[Resource] = []
    for end in range(count, 0, -PAGE_SIZE):
        start = max(0, end - PAGE_SIZE)
        page = bmc.get_with(path, {"$skip": str(start), "$top": str(end - start)})
        entries = page.get("Members", [])
        newest = entries + newest
        if any(cursor.matches(entry) for entry in entries):
            break
    return newest


def _oldest_first(entries: list[Resource]) -> list[Resource]:
    return entries[::-1] if _newest_first(entries) else entries


def _newest_first(entries: list[Resource]) -> bool:
    times = [str(entry.get("Created") or "") for entry in entries]
    return len(times) > 1 and times[0] > times[-1]


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


class LogsBefore(NamedTuple):
    """How far the logs were read before: name → cursor as text, and the events that are known."""

    cursors: Mapping[str, str] = {}
    events: tuple[Event, ...] = ()


NEVER_READ = LogsBefore()


class _Log(NamedTuple):
    """One log: its name (`Systems System_0 SEL`), and the path of its entries."""

    name: str
    entries: str


def read_all_logs(
    bmc: RedfishSession, systems: Callable[[], list[Resource]], before: LogsBefore = NEVER_READ, now: str = ""
) -> ReadingTree:
    """Return `events`, the new entries of all logs, and `event_log`: cursors, counts by severity, and each log's own.

    `now` is our time. Entries that are new since an earlier reading have it as `seen`, for BMCs whose clocks are wrong.
    Counts are of all entries that ever came. They are failed while one log cannot be read. Raises AssayError where the
    BMC has no event log.
    """
    listed = bmc.reads.gather(
        partial(read_branch, partial(_list_logs, bmc, holder)) for holder in _list_holders(bmc, systems())
    )
    lost = {f"logs {number}": logs for number, logs in enumerate(listed) if "failed" in logs}
    logs = list({log.entries: log for logs in listed if isinstance(logs, list) for log in logs}.values())
    if not logs and not lost:
        raise BmcResourceMissing("the BMC has no event log that its dialect names", where=bmc.where)
    cursors = {log.name: EventLogCursor.parse(before.cursors.get(log.name, "")) for log in logs}
    read = bmc.reads.gather(
        partial(read_branch, partial(read_new_entries, bmc, log.entries, cursors[log.name])) for log in logs
    )
    return _merge({log.name: entries for log, entries in zip(logs, read, strict=True)} | lost, cursors, before, now)


def _merge(read: Mapping[str, Any], cursors: Mapping[str, EventLogCursor], before: LogsBefore, now: str) -> ReadingTree:
    """Return the readings of all logs. `read` has, by name, the new entries of a log or a leaf with the reason."""
    known = {_identity(event) for event in before.events}
    events: list[Event] = []
    after = dict(cursors)
    logs: ReadingTree = {}
    for name, entries in read.items():
        if not isinstance(entries, list):
            logs[name] = entries
            continue
        seen = now if name in before.cursors else ""
        own = [{**parse_log_entry(entry), "log": name, "seen": seen} for entry in entries]
        new = [event for event in own if _identity(event) not in known]
        known |= {_identity(event) for event in own}
        events += new
        after[name] = cursors[name].after(own, counted=new)
        logs[name] = {"critical": value(after[name].critical), "warning": value(after[name].warning)}
    texts = {**before.cursors, **{name: str(cursor) for name, cursor in after.items()}}
    unread = next((f"{name}: {leaf['failed']}" for name, leaf in logs.items() if "failed" in leaf), "")
    counts = {
        level: failed(unread) if unread else value(sum(getattr(cursor, level) for cursor in after.values()))
        for level in ("critical", "warning")
    }
    return {"events": value(events), "event_log": {"cursors": value(texts), **counts, "logs": logs}}


def _identity(event: Event) -> tuple[str, str, str]:
    return event["id"], event["at"], event["severity"]


def _list_holders(bmc: RedfishSession, systems: Sequence[Resource]) -> Iterator[Callable[[], Resource]]:
    """Yield, for each system, manager and chassis that may hold a log, how to read it."""
    yield from (partial(dict, system) for system in systems)
    linked = [link for kind in ("ManagedBy", "Chassis") for system in systems for link in read_link_paths(system, kind)]
    named = [pattern for pattern in bmc.dialect.logs if pattern.startswith("Chassis/") and pattern[8] != "*"]
    managers = [] if any(read_link_paths(system, "ManagedBy") for system in systems) else _list_members(bmc, "Managers")
    chassis = (
        [path for path in _list_members(bmc, "Chassis") if any(_fits_head(p, path) for p in named)] if named else []
    )
    for path in dict.fromkeys([*linked, *managers, *chassis]):
        if any(_fits_head(pattern, path) for pattern in bmc.dialect.logs):
            yield partial(bmc.get, path)


def _list_members(bmc: RedfishSession, collection: str) -> list[str]:
    if collection not in bmc.root:
        return []
    return [member["@odata.id"] for member in bmc.follow(bmc.root, collection).get("Members", [])]


def _list_logs(bmc: RedfishSession, holder: Callable[[], Resource]) -> list[_Log]:
    """Return the logs of one resource that the dialect names and does not leave out."""
    resource = holder()
    if "LogServices" not in resource:
        return []
    logs = []
    for service in bmc.members(bmc.follow(resource, "LogServices", 1)):
        path = f"{resource.get('@odata.id', '').rstrip('/')}/LogServices/{service.get('Id')}"
        if _is_named(bmc, path) and "Entries" in service:
            kind, owner, _, ident = path.removeprefix(_ROOT).split("/")
            logs.append(_Log(f"{kind} {owner} {ident}", str(service["Entries"]["@odata.id"])))
    return logs


def _is_named(bmc: RedfishSession, path: str) -> bool:
    short = path.removeprefix(_ROOT)
    if any(fnmatchcase(short, pattern) for pattern in bmc.dialect.logs_left_out):
        return False
    return any(fnmatchcase(short, pattern) for pattern in bmc.dialect.logs)


def _fits_head(pattern: str, path: str) -> bool:
    """Return whether a pattern of log services may match one of a resource at this path."""
    return fnmatchcase(path.removeprefix(_ROOT), pattern.partition("/LogServices/")[0])
