"""Wipes the drives of a node, all at once, by one method after the other until nothing can be read of their marks.

Each order is in the ledger before it is given. After a crash, the drives themselves say how far they are: a sanitize in
progress is waited for, and a drive that is wiped is not wiped again.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass

from assay.act.actions.action import POLL_BACKOFF, ActionContext, EffectIntent, UnfinishedAction, find_action_effort
from assay.act.remedies.ansible_playbook import run_playbook
from assay.act.remedies.wipe_verdict import (
    WIPE_KINDS,
    DriveReading,
    DriveRecord,
    WipeVerdict,
    find_obstacle,
    fold_wipe,
    judge_order,
    list_release_commands,
    make_wipe_entry,
    read_local_drives,
)
from assay.model.entries.effects import WipeMissedEntry, WipeOrderedEntry, WipeProvedEntry
from assay.model.errors import AssayError
from assay.model.specs.node.host_settings import WipeSpec

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
