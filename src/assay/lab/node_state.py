"""The event log of a BMC (its SEL), kept in the node's state.

What a virtual node's kernel says: lines of its log.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from assay.lab.world import VirtualNodeState

SelSeverity = Literal["OK", "Warning", "Critical"]
MAX_SEL_EVENTS = 500


def with_sel_event(
    state: VirtualNodeState, at: datetime, severity: SelSeverity, message: str, message_id: str
) -> VirtualNodeState:
    """Return the state with one more event; the oldest of more than `MAX_SEL_EVENTS` goes. Ids count up and never return."""
    events: list[dict[str, Any]] = state.get("events", [])
    number = max([state.get("last_event", 0), *(int(event["id"]) for event in events if event["id"].isdecimal())]) + 1
    event = {
        "id": str(number),
        "at": at.isoformat(),
        "severity": severity,
        "message": message,
        "message_id": message_id,
    }
    return {**state, "events": [*events, event][-MAX_SEL_EVENTS:], "last_event": number}


def with_sel_cleared(state: VirtualNodeState, at: datetime) -> VirtualNodeState:
    """Return the state with an empty event log, but for the note of its clearing, as IPMI's SEL has it."""
    return with_sel_event({**state, "events": []}, at, "OK", "The event log was cleared", "Assay.1.0.LogCleared")


def append_kernel_line(state: VirtualNodeState, at: datetime, text: str) -> None:
    """Append a line to the node's kernel log."""
    state["kernel_log"].append({"at": at.isoformat(), "text": text})
