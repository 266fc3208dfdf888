"""Reads every event log of a BMC that its dialect names: of systems, managers and chassis. Each log fails alone.

Some services show one store as several logs (OpenBMC's SEL and EventLog): an entry with the id, time and severity of
one that another log has shown is that entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, NamedTuple

from assay.adapters.bmc.errors import BmcResourceMissing
from assay.adapters.bmc.event_log import EventLogCursor, parse_log_entry, read_new_entries
from assay.adapters.bmc.property_readings import read_branch
from assay.adapters.bmc.session import RedfishSession, Resource
from assay.model.reading import ReadingTree, failed, value

Event = dict[str, str]
_ROOT = "/redfish/v1/"


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
    found = bmc.reads.gather(
        partial(read_branch, partial(_list_logs, bmc, holder)) for holder in _list_holders(bmc, systems())
    )
    lost = {f"logs {number}": logs for number, logs in enumerate(found) if "failed" in logs}
    logs = list({log.entries: log for logs in found if isinstance(logs, list) for log in logs}.values())
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
    linked = [link for kind in ("ManagedBy", "Chassis") for system in systems for link in _links(system, kind)]
    named = [pattern for pattern in bmc.dialect.logs if pattern.startswith("Chassis/") and pattern[8] != "*"]
    managers = [] if any(_links(system, "ManagedBy") for system in systems) else _list_members(bmc, "Managers")
    chassis = (
        [path for path in _list_members(bmc, "Chassis") if any(_fits_head(p, path) for p in named)] if named else []
    )
    for path in dict.fromkeys([*linked, *managers, *chassis]):
        if any(_fits_head(pattern, path) for pattern in bmc.dialect.logs):
            yield partial(bmc.get, path)


def _links(system: Resource, kind: str) -> list[str]:
    return [link["@odata.id"] for link in (system.get("Links") or {}).get(kind, [])]


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
