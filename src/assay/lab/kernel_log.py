"""What a virtual node's kernel says: lines of its log."""

from __future__ import annotations

from datetime import datetime

from assay.lab.world import State


def kernel_line(state: State, at: datetime, text: str) -> None:
    """Append a line to the node's kernel log."""
    state["kernel_log"].append({"at": at.isoformat(), "text": text})
