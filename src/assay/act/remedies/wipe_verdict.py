"""Whether a drive is wiped, by what the ledger knows was ordered and what the probe reads of it now. Pure.

A drive is wiped if its blocks held a marker before, none of them holds it now, and, for a sanitize, its log says that
this sanitize has completed. A reading that failed is a doubt, never a proof.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

from assay.model.entries.effects import WipeMissedEntry, WipeOrderedEntry, WipeProvedEntry
from assay.model.entries.entry_content import EntryContent
from assay.model.errors import AssayError
from assay.model.evidence import read_at_path
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.node import Node
from assay.model.specs.node.host_settings import WipeSpec
from assay.model.text.lists import format_list
from assay.observe.transports.transport import run_remote_probe

PROBE_S = 30.0
AREA = "drive_wipe"
LOCAL = "pcie"


@dataclass(frozen=True, slots=True)
class DriveReading:
    """One NVMe controller.

    `methods`: the ways in which it can be erased. `log_status`, `log_action`: its sanitize log, "" for a drive without
    one. `users`: (kind, name) of what uses it. `offsets`: the sampled blocks in bytes, by block device. `marked`: how
    many of them hold the marker. `doubts`: why a part could not be read, by the part's name.
    """

    name: str
    serial: str
    model: str
    transport: str
    methods: tuple[str, ...]
    log_status: str
    log_action: str
    users: tuple[tuple[str, str], ...]
    offsets: Mapping[str, list[int]]
    marked: int
    doubts: Mapping[str, str]

    @property
    def samples(self) -> int:
        """How many blocks are sampled."""
        return sum(map(len, self.offsets.values()))

    def __str__(self) -> str:
        return f"{self.name} (serial {self.serial or 'unknown'})"


def read_local_drives(node: Node, markers: Mapping[str, str]) -> list[DriveReading]:
    """Return the node's NVMe drives that no network lies before. `markers`: what to look for, by serial number.

    Raises AssayError if the node does not answer, or has no such drive.
    """
    words = ["--areas", AREA, "--markers", json.dumps(dict(markers))]
    tree = run_remote_probe(node, words, PROBE_S)
    drives = read_at_path(tree, ("probe", AREA))
    if drives.kind != "value" or not isinstance(drives.value, dict):
        raise AssayError(f"its drives cannot be read: {drives.reason}", where=node.name)
    readings = [_parse_drive(name, branch) for name, branch in drives.value.items()]
    return [drive for drive in readings if drive.transport == LOCAL or "transport" in drive.doubts]


def _parse_drive(name: str, branch: Mapping[str, Any]) -> DriveReading:
    doubts: dict[str, str] = {}

    def take(*path: str) -> Any:
        reading = read_at_path(branch, path)
        if reading.kind != "value":
            doubts.setdefault(path[0], reading.reason)
            return None
        return reading.value

    blocks = take("blocks") or {}
    return DriveReading(
        name=name,
        serial=take("serial") or "",
        model=take("model") or "",
        transport=take("transport") or "",
        methods=tuple(take("methods") or ()),
        log_status=take("log", "status") or "",
        log_action=take("log", "action") or "",
        users=tuple((kind, user) for kind, user in take("users") or ()),
        offsets={device: samples["offsets"] for device, samples in blocks.items()},
        marked=sum(samples["marked"] for samples in blocks.values()),
        doubts=doubts,
    )


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
    for part, identity in IDENTITY.items():
        if part in drive.doubts or (part == "serial" and not drive.serial):
            return f"{identity} cannot be read: {drive.doubts.get(part, 'it is empty')}"
    if users := list_keeping_users(drive, spec):
        forms = {"mount": "mounted at", "swap": "swap on"}
        shown = [f"{forms.get(kind, 'part of')} {name}" for kind, name in users]
        return f"it is in use: {format_list(shown, 3)}"
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


WIPE_KINDS = (WipeOrderedEntry.kind, WipeProvedEntry.kind, WipeMissedEntry.kind)


@dataclass(slots=True)
class DriveRecord:
    """What one effect did to one drive: its newest order with its time, and why earlier methods did not help."""

    order: WipeOrderedEntry | None = None
    ordered_at: str = ""
    missed: dict[str, str] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """Whether the newest order may still come about."""
        return self.order is not None and self.order.method not in self.missed


def fold_wipe(entries: Iterable[LedgerEntry], effect: str) -> dict[str, DriveRecord]:
    """Return what an effect did, by the serial number of the drive, from entries of any kinds in order."""
    records: dict[str, DriveRecord] = {}
    for entry in entries:
        if entry.kind == WipeOrderedEntry.kind:
            order = WipeOrderedEntry.read(entry)
            if order.effect == effect:
                record = records.setdefault(order.serial, DriveRecord())
                record.order, record.ordered_at = order, entry.at
        elif entry.kind == WipeMissedEntry.kind:
            missed = WipeMissedEntry.read(entry)
            if missed.effect == effect:
                records.setdefault(missed.serial, DriveRecord()).missed[missed.method] = missed.reason
    return records


def make_wipe_entry(content: WipeOrderedEntry | WipeProvedEntry | WipeMissedEntry, at: str, node: str) -> LedgerEntry:
    """Return the entry: one of a kind for each effect, drive and method."""
    base: EntryContent = content
    return base.make_entry(derive_id(content.kind, content.effect, content.serial, content.method), at, node)
