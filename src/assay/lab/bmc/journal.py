"""The event log of a BMC (its SEL), kept in the node's state."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from assay.lab.world import State

Severity = Literal["OK", "Warning", "Critical"]
KEPT = 500


def logged(state: State, at: datetime, severity: Severity, message: str, message_id: str) -> State:
    """Return the state with one more event; the oldest of more than `KEPT` goes. Ids count up and never return."""
    events: list[dict[str, Any]] = state.get("events", [])
    number = max([state.get("last_event", 0), *(int(event["id"]) for event in events if event["id"].isdecimal())]) + 1
    event = {
        "id": str(number),
        "at": at.isoformat(),
        "severity": severity,
        "message": message,
        "message_id": message_id,
    }
    return {**state, "events": [*events, event][-KEPT:], "last_event": number}


def cleared(state: State, at: datetime) -> State:
    """Return the state with an empty event log, but for the note of its clearing, as IPMI's SEL has it."""
    return logged({**state, "events": []}, at, "OK", "The event log was cleared", "Assay.1.0.LogCleared")
