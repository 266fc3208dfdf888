"""Drives that cannot be wiped, or say that they were."""

# ruff: noqa: ARG001 — all faults take the same arguments; not every fault needs the time
from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from assay.lab.virtual_node_state import VirtualNodeState


def sanitize_fails(state: VirtualNodeState, now: datetime, drive: int) -> None:
    """A drive whose sanitize begins, fails, and erases nothing. It refuses to be formatted after that."""
    state["nvme"][drive]["wipe_fails"] = True


def sanitize_lies(state: VirtualNodeState, now: datetime, drive: int) -> None:
    """A drive that reports each wipe as a success, and erases nothing."""
    state["nvme"][drive]["wipe_lies"] = True


def wipe_unknown(state: VirtualNodeState, now: datetime, drive: int, knows: str = "format-erase") -> None:
    """A drive that knows only these ways to erase (comma separated), or none."""
    state["nvme"][drive]["can_wipe"] = knows.split(",") if knows else []


WIPE_FAULTS: Mapping[str, Callable[..., None]] = {
    "nvme.sanitize-fails": sanitize_fails,
    "nvme.sanitize-lies": sanitize_lies,
    "nvme.wipe-unknown": wipe_unknown,
}
