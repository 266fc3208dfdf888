"""Whether a drive is wiped, by what was ordered and what is read of it now. Pure.

A drive is wiped if its blocks held a marker before, none of them holds it now, and, for a sanitize, its log says that
this sanitize has completed.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

from assay.act.remedies.drive_readings import DriveReading
from assay.model.entries.wipe_entries import WipeOrderedEntry
from assay.model.specs.node.drive_wipe import WipeSpec
from assay.model.text.text_lists import format_list

Standing = Literal["wiped", "not wiped", "under way", "unknown"]
SANITIZE = "sanitize-"
IDENTITY = {
    "serial": "its serial number",
    "model": "its model",
    "transport": "its transport",
    "users": "what uses it",
}


class WipeVerdict(NamedTuple):
    """How far the wipe of one drive is, and why."""

    standing: Standing
    reason: str


def judge_order(drive: DriveReading, order: WipeOrderedEntry) -> WipeVerdict:
    """Return how far an order is. A part that cannot be read leaves it unknown."""
    sanitized = order.method.startswith(SANITIZE)
    if drive.log_status == "in progress":
        return WipeVerdict("under way", "its sanitize is in progress")
    if sanitized and "log" in drive.doubts:
        return WipeVerdict("unknown", f"its sanitize log cannot be read: {drive.doubts['log']}")
    if sanitized and drive.log_status == "failed":
        return WipeVerdict("not wiped", "its sanitize log says that the sanitize failed")
    if "blocks" in drive.doubts or not drive.samples:
        return WipeVerdict("unknown", f"its blocks cannot be read: {drive.doubts.get('blocks', 'it has none')}")
    log = f"its sanitize log says: {drive.log_status}" if sanitized else "a format leaves no log"
    if drive.marked:
        return WipeVerdict("not wiped", f"{drive.marked} of {drive.samples} marked blocks can still be read; {log}")
    if sanitized and (drive.log_status, drive.log_action) != ("completed", order.method):
        return WipeVerdict("not wiped", f"{log}, of {drive.log_action}, not of {order.method}")
    return WipeVerdict("wiped", f"none of {drive.samples} marked blocks can be read any more; {log}")


def find_obstacle(drive: DriveReading, spec: WipeSpec) -> str:
    """Return why a drive may not be wiped at all, "" if it may."""
    if not is_selected(drive, spec):
        return f"`wipe.models` of its spec leaves out {drive.model or 'a drive without a model name'}"
    for part, what in IDENTITY.items():
        if part in drive.doubts or (part == "serial" and not drive.serial):
            return f"{what} cannot be read: {drive.doubts.get(part, 'it is empty')}"
    if users := list_keeping_users(drive, spec):
        return f"it is in use: {format_list([_format_user(*user) for user in users], 3)}"
    if not set(drive.methods) & set(spec.methods):
        known = ", ".join(drive.methods) or drive.doubts.get("methods") or "none"
        return f"it knows none of the methods of its spec; it knows: {known}"
    return ""


def is_selected(drive: DriveReading, spec: WipeSpec) -> bool:
    """Whether a spec asks for the wipe of a drive. One whose model cannot be read is not left out."""
    return "model" in drive.doubts or any(fnmatchcase(drive.model, pattern) for pattern in spec.models)


def list_keeping_users(drive: DriveReading, spec: WipeSpec) -> list[tuple[str, str]]:
    """Return the users that the wipe may not end. It may stop an array of which nothing else is in use."""
    kept = [(kind, name) for kind, name in drive.users if kind != "holder" and name not in spec.unmount]
    return kept + [(kind, name) for kind, name in drive.users if kind == "holder" and (kept or name[:2] != "md")]


def list_release_commands(drives: list[DriveReading]) -> list[list[str]]:
    """Return the commands that end what uses these drives: file systems first, then the arrays below."""
    users = dict.fromkeys(user for drive in drives for user in drive.users)
    unmounts = [["umount", name] for kind, name in users if kind == "mount"]
    return unmounts + [["mdadm", "--stop", f"/dev/{name}"] for kind, name in users if kind == "holder"]


def _format_user(kind: str, name: str) -> str:
    return {"mount": f"mounted at {name}", "swap": f"swap on {name}"}.get(kind, f"part of {name}")
