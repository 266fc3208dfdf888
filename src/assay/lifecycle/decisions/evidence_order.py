"""Says what evidence proves, by the ledger's order and the node's boots. Clocks count only where neither is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from assay.lifecycle.decisions.known_issues import is_fault_excused
from assay.lifecycle.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.lifecycle.node_state import FaultRecord, NodeState
from assay.model.outcome import RecordedOutcome
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.timestamps import parse_time

BOOT_ID_SHOWN = 8
"""So many characters of a boot id tell boots apart."""


@dataclass(frozen=True, slots=True)
class RequiredBoot:
    """The boot that evidence must be of, and what shows that; "" where any boot will do."""

    boot_id: str = ""
    shown_by: str = ""
    is_verified: bool = False

    def find_mismatch(self, recorded: RecordedOutcome) -> str:
        """Return why evidence is not of this boot, "" if it is."""
        boot = recorded.outcome.basis.boot_id
        if not self.boot_id or boot == self.boot_id or (not boot and not self.is_verified):
            return ""
        if not boot:
            return f"its evidence names no boot; {self.shown_by} shows {self.boot_id[:BOOT_ID_SHOWN]}"
        shown = boot[:BOOT_ID_SHOWN], self.boot_id[:BOOT_ID_SHOWN]
        return f"its evidence is of another boot ({shown[0]}); {self.shown_by} shows {shown[1]}"


def find_required_boot(node_state: NodeState, outcomes: Iterable[RecordedOutcome]) -> RequiredBoot:
    """Return the boot that a verified restart of this stay read back; without one, that of the newest outcome."""
    restarts = {effect.id for effect in node_state.effects if effect.decision == node_state.decision}
    verified = next((one for one in reversed(node_state.repairs) if one.id in restarts and one.boot_id), None)
    if verified:
        return RequiredBoot(verified.boot_id, f"the verified {verified.kind}", is_verified=True)
    with_boot = [one for one in outcomes if one.outcome.basis.boot_id]
    newest = max(with_boot, key=lambda one: (one.outcome.basis.after_entry or 0, one.seen_at, one.id), default=None)
    return RequiredBoot(newest.outcome.basis.boot_id, "later evidence") if newest else RequiredBoot()


def is_newer_than_repair(node_state: NodeState, recorded: RecordedOutcome) -> bool:
    """Whether the judged evidence was read after the last repair."""
    after_entry = recorded.outcome.basis.after_entry
    if after_entry is not None and node_state.repaired_seq:
        return after_entry >= node_state.repaired_seq
    return parse_time(recorded.measured_at) > parse_time(node_state.repaired_at)


def counts_in_stay(policy: LifecyclePolicy, node_state: NodeState, recorded: RecordedOutcome) -> bool:
    """Whether an outcome counts against the node: its stay has begun, and a repair has settled."""
    measured = parse_time(recorded.measured_at)
    repaired, settle = parse_time(node_state.repaired_at), timedelta(minutes=policy.settle_minutes)
    after_entry = recorded.outcome.basis.after_entry
    if after_entry is None or not node_state.stay_seq:
        return measured >= _settled_since(node_state, repaired, settle)
    if after_entry < max(node_state.stay_seq, node_state.repaired_seq):
        return False
    return not node_state.repairs or not timedelta() <= measured - repaired < settle


def _settled_since(node_state: NodeState, repaired: datetime, settle: timedelta) -> datetime:
    since = parse_time(node_state.since)
    return max(since, repaired + settle) if node_state.repairs else since


def find_unproved_fault(snapshot: FleetSnapshot, view: NodeSnapshot, recorded: RecordedOutcome) -> FaultRecord | None:
    """Return an open fault of the node that its evidence may not have seen, None if there is none.

    Informational faults, those that the last repair answers, and those that decide nothing do not count.
    """
    after_entry = recorded.outcome.basis.after_entry
    return next(
        (
            fault
            for fault in view.node_state.faults
            if fault.severity != "informational"
            and is_unproved(view.node_state, fault, after_entry)
            and not is_fault_excused(snapshot, view, fault)
        ),
        None,
    )


def is_unproved(node_state: NodeState, fault: FaultRecord, after_entry: int | None) -> bool:
    """Whether an open fault entered the ledger after the evidence, or nobody knows that it did not."""
    if not fault.is_open or not fault.seq or node_state.is_repaired(fault):
        return False
    return after_entry is None or fault.seq > after_entry


def find_proof_number(policy: LifecyclePolicy, view: NodeSnapshot) -> int | None:
    """Return the ledger's number before the oldest evidence that the node's state rests on, None if it is not known.

    Faults up to that number are proved over. A state that requires nothing rests on all that is known.
    """
    phases = {requirement.phase for requirement in policy.states[view.node_state.state].requires}
    known = max((fault.seq for fault in view.node_state.faults), default=0)
    numbers = [one.outcome.basis.after_entry for one in view.latest if phases & set(one.outcome.phases)]
    return None if None in numbers else min((number for number in numbers if number is not None), default=known)
