"""Wipes the drives of a node, all at once, by one method after the other until nothing can be read of their marks.

Each order is in the ledger before it is given. After a crash, the drives themselves say how far they are: a sanitize in
progress is waited for, and a drive that is wiped is not wiped again.

A drive is wiped if its blocks held a marker before, none of them holds it now, and, for a sanitize, its log says that
this sanitize has completed. A reading that failed is a doubt, never a proof.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

from assay.act.actions.action import POLL_BACKOFF, ActionContext, EffectIntent, UnfinishedAction, find_action_effort
from assay.act.remedies.ansible_playbook import run_playbook
from assay.model.entries.effects import WipeMissedEntry, WipeOrderedEntry, WipeProvedEntry
from assay.model.entries.entry_content import EntryContent
from assay.model.errors import AssayError
from assay.model.evidence import read_at_path
from assay.model.facts import frozen
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.node import Node
from assay.model.specs.node.host_settings import WipeSpec
from assay.model.text.lists import format_list
from assay.observe.transports.transport import run_remote_probe

PROBE_S = 30.0
AREA = "drive_wipe"
LOCAL = "pcie"


@frozen
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


PLAYBOOK = "wipe.yml"


def read_records(context: ActionContext, intent: EffectIntent) -> dict[str, DriveRecord]:
    """Return what this effect did so far, by the serial number of the drive."""
    return fold_wipe(context.ledger.entries(intent.node, WIPE_KINDS), intent.effect)


def read_with_markers(
    context: ActionContext, intent: EffectIntent, records: dict[str, DriveRecord]
) -> list[DriveReading]:
    """Return the node's drives, and how many blocks hold the marker of the newest order. Raises AssayError."""
    markers = {serial: record.order.marker for serial, record in records.items() if record.order}
    return read_local_drives(context.fleet.nodes[intent.node], markers)


def record_proof(
    context: ActionContext, intent: EffectIntent, drive: DriveReading, record: DriveRecord, proof: str
) -> None:
    """Record that a drive is proven wiped by its newest order; again, that adds nothing."""
    if order := record.order:
        content = WipeProvedEntry(intent.effect, drive.serial, drive.model, drive.name, order.method, proof)
        context.ledger.append(make_wipe_entry(content, context.clock.now().isoformat(), intent.node))


@dataclass(slots=True)
class NodeWipe:
    """The wipe of one node for one effect."""

    context: ActionContext
    intent: EffectIntent
    spec: WipeSpec

    def run(self) -> None:
        """Wipe what can be wiped. Raises AssayError if the node does not answer, UnfinishedAction if it takes too long.

        What could not be wiped is in the ledger, with the reason.
        """
        self._finish_open_orders(repeat=True)
        while batch := self._choose():
            markers = {drive.serial: secrets.token_hex(32) for drive, _ in batch}
            trouble = self._run_playbook("mark", batch, markers)
            marked = {drive.serial: drive for drive in self._read(markers) if drive.marked == drive.samples > 0}
            ready = [(marked[drive.serial], method) for drive, method in batch if drive.serial in marked]
            for drive, method in batch:
                if drive.serial not in marked:
                    self._miss(drive, method, f"its blocks could not be marked and read back{trouble}")
            for drive, method in ready:
                self.context.progress(f"{self.intent.node}: wipes {drive} by {method} …")
                self._append(WipeOrderedEntry(*self._name(drive, method), markers[drive.serial], drive.samples))
            trouble = self._run_playbook("erase", ready, {}) if ready else ""
            self._finish_open_orders(trouble=trouble)

    def _read(self, markers: dict[str, str]) -> list[DriveReading]:
        return read_local_drives(self.context.fleet.nodes[self.intent.node], markers)

    def _choose(self) -> list[tuple[DriveReading, str]]:
        """Return the drives that are still to be wiped, each with the first method that it knows and was not tried."""
        records, batch = read_records(self.context, self.intent), list[tuple[DriveReading, str]]()
        for drive in self._read({}):
            record = records.get(drive.serial, DriveRecord())
            left = [method for method in self.spec.methods if method in drive.methods and method not in record.missed]
            if left and not record.is_open and not find_obstacle(drive, self.spec):
                batch.append((drive, left[0]))
        return batch

    def _run_playbook(self, step: str, batch: list[tuple[DriveReading, str]], markers: dict[str, str]) -> str:
        """Run one step on these drives, and return what went wrong, "" for nothing. The drives say what it did."""
        drives = []
        for drive, method in batch:
            ordered = {"serial": drive.serial, "method": method, "marker": markers.get(drive.serial, "")}
            drives.append(ordered | {"offsets": {name: list(places) for name, places in drive.offsets.items()}})
        release = list_release_commands([drive for drive, _ in batch])
        variables = {"drive_wipe_step": step, "drive_wipe_drives": drives, "drive_wipe_release": release}
        try:
            run_playbook(self.context, self.intent, PLAYBOOK, variables)
        except UnfinishedAction:
            raise
        except AssayError as error:
            return f": {error.what}"
        return ""

    def _finish_open_orders(self, *, repeat: bool = False, trouble: str = "") -> None:
        """Wait for every open order, and record how it ended.

        `repeat`: another process gave these orders, or was killed before it could. A drive that still has its marks is
        told once more.
        """
        for drive, record, verdict in self._await_orders():
            order = record.order
            assert order  # only drives with an open order come back
            if verdict.standing == "wiped":
                record_proof(self.context, self.intent, drive, record, verdict.reason)
            elif repeat and drive.log_status != "failed" and not find_obstacle(drive, self.spec):
                self._run_playbook("erase", [(drive, order.method)], {})
            else:
                self._miss(drive, order.method, verdict.reason + trouble)
        if repeat:
            self._finish_open_orders()

    def _await_orders(self) -> list[tuple[DriveReading, DriveRecord, WipeVerdict]]:
        """Return the drives with open orders, once none is under way and all can be read."""
        ends_at, polls = time.monotonic() + find_action_effort(self.context.fleet, self.intent.action).deadline_s, 0
        entries = self.context.ledger.entries(self.intent.node, [WipeProvedEntry.kind])
        proofs = map(WipeProvedEntry.read, entries)
        proved = {proof.serial for proof in proofs if proof.effect == self.intent.effect}
        records = {
            serial: record
            for serial, record in read_records(self.context, self.intent).items()
            if record.is_open and serial not in proved
        }
        while records:
            drives = {drive.serial: drive for drive in read_with_markers(self.context, self.intent, records)}
            judged = [
                (drives[serial], record, judge_order(drives[serial], record.order))
                for serial, record in records.items()
                if serial in drives and record.order
            ]
            waiting = [(drive, verdict) for drive, _, verdict in judged if verdict.standing in ("under way", "unknown")]
            if not waiting:
                return judged
            if time.monotonic() > ends_at:
                drive, verdict = waiting[0]
                raise UnfinishedAction(f"{drive}: {verdict.reason}", where=self.intent.node)
            polls += 1
            time.sleep(POLL_BACKOFF.wait_s(polls))
        return []

    def _miss(self, drive: DriveReading, method: str, reason: str) -> None:
        self.context.progress(f"{self.intent.node}: {drive} is not wiped by {method}: {reason}")
        self._append(WipeMissedEntry(*self._name(drive, method), reason))

    def _name(self, drive: DriveReading, method: str) -> tuple[str, str, str, str, str]:
        return self.intent.effect, drive.serial, drive.model, drive.name, method

    def _append(self, content: WipeOrderedEntry | WipeMissedEntry) -> None:
        at = self.context.clock.now().isoformat()
        self.context.ledger.append(make_wipe_entry(content, at, self.intent.node))
