"""The system event log, as resources."""

from __future__ import annotations

from typing import Any

from assay.lab.bmc.systems import PATH as SYSTEM
from assay.lab.bmc.tree import ROOT, Resource, View, collection, link, resource, status

PATH = f"{SYSTEM}/LogServices"
SEL = f"{PATH}/SEL"
ENTRIES = f"{SEL}/Entries"
CLEAR = f"{ROOT}{SEL}/Actions/LogService.ClearLog"


def log_services(_: View) -> Resource:
    """The one log."""
    return collection("LogService", "Log services", [SEL])


def sel(view: View) -> Resource:
    """The system event log."""
    return resource(
        "LogService",
        "1_5_2",
        "SEL",
        "System event log",
        ServiceEnabled=True,
        LogEntryType="Event",
        OverWritePolicy="WrapsWhenFull",
        DateTime=view.now.isoformat(timespec="seconds"),
        Status=status(),
        Entries=link(ENTRIES),
        Actions={"#LogService.ClearLog": {"target": CLEAR}},
    )


def entries(view: View) -> Resource:
    """All entries, oldest first, each whole, as the specification asks of log entries."""
    events = view.state.get("events", [])
    found = collection("LogEntry", "Log entries", ())
    members = [{"@odata.id": f"{ROOT}{ENTRIES}/{event['id']}", **_body(event)} for event in events]
    return {**found, "Members": members, "Members@odata.count": len(members)}


def entry(view: View, ident: str) -> Resource:
    """One entry."""
    return _body(next(event for event in view.state.get("events", []) if event["id"] == ident))


def _body(event: dict[str, Any]) -> Resource:
    return resource(
        "LogEntry",
        "1_16_2",
        event["id"],
        f"Event {event['id']}",
        EntryType="Event",
        Created=event["at"],
        Severity=event["severity"],
        Message=event["message"],
        MessageId=event["message_id"],
    )
