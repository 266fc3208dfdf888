"""The state of one virtual node: its type, how it is written to disk, and what its event log and kernel log record.

`assay.lab.node.virtual_node` documents the keys. The burn-in tools import this module in processes that start often,
so it needs the standard library only.
"""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

VirtualNodeState = dict[str, Any]
SelSeverity = Literal["OK", "Warning", "Critical"]
MAX_SEL_EVENTS = 500


def write_json(path: Path, plain: Any) -> None:
    """Replace `path` by rename: readers see the old file or the new one, never a part."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.parent.mkdir(parents=True, exist_ok=True)
    scratch.write_text(json.dumps(plain))  # without indent: that takes ten times as long
    scratch.replace(path)


def with_sel_event(
    state: VirtualNodeState, at: datetime, severity: SelSeverity, message: str, message_id: str
) -> VirtualNodeState:
    """Return the state with one more event in the BMC's event log (its SEL).

    The log holds `MAX_SEL_EVENTS`; the oldest go. Ids count up and are never reused.
    """
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
    """Return the state with an event log that holds only the note of its clearing, as an IPMI SEL does."""
    return with_sel_event({**state, "events": []}, at, "OK", "The event log was cleared", "Assay.1.0.LogCleared")


def append_kernel_line(state: VirtualNodeState, at: datetime, text: str) -> None:
    """Append a line to the node's kernel log, in place."""
    state["kernel_log"].append({"at": at.isoformat(), "text": text})
