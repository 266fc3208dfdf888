"""Says whether evidence still counts: by its age, by the ledger's order and by the node's boots.

For the order, clocks count only where neither the ledger nor a boot shows it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from assay.decide.moves.excused_failures import is_fault_excused
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_state import NodeState
from assay.model.clock import MAX_CLOCK_SKEW
from assay.model.evidence import BOOT_ID_SHOWN
from assay.model.facts import frozen
from assay.model.faults.fault_record import FaultRecord
from assay.model.outcome import RecordedOutcome
from assay.model.specs.check_catalog import CheckDeclaration
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.policy_sections import PhaseRequirement
from assay.model.timestamps import format_duration, hours, parse_time


@frozen
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


def find_shortcoming(
    snapshot: FleetSnapshot,
    requirement: PhaseRequirement,
    check: CheckDeclaration,
    recorded: RecordedOutcome | None,
    *,
    excused: bool,
) -> str:
    """Return why an outcome does not count as a pass or an excused failure, "" if it counts."""
    if recorded is None:
        return "never judged"
    outcome = recorded.outcome
    if outcome.verdict != "pass" and not excused:
        return f"{outcome.verdict}: {outcome.reason}"
    if not outcome.evidence_at:
        return "judged without evidence"
    max_hours, set_by = requirement.fresh_hours, "that the state allows"
    if check.valid_hours is not None and check.valid_hours < max_hours:
        max_hours, set_by = check.valid_hours, "for which a pass of this check is valid"
    seen = parse_time(recorded.seen_at)
    if recorded.is_dated_ahead or seen - snapshot.now > MAX_CLOCK_SKEW:
        return f"its evidence is dated ahead ({outcome.evidence_at[:19]}): how old it is cannot be told"
    if snapshot.now - seen > hours(max_hours):
        return f"its evidence is {format_duration(snapshot.now - seen)} old, more than the {max_hours:g} h {set_by}"
    return ""


def find_disorder(
    snapshot: FleetSnapshot,
    view: NodeSnapshot,
    requirement: PhaseRequirement,
    recorded: RecordedOutcome | None,
    boot: RequiredBoot,
) -> str:
    """Return what came after the evidence, or why it may be another machine's: it proves nothing; "" if it does."""
    if recorded is None:
        return ""
    today = view.judging_hashes.get(recorded.outcome.check)
    if today and recorded.outcome.judged_by != today:
        return "judged by an older spec: its limits, its values or its code have changed since"
    if requirement.newer_than_repair and not is_newer_than_repair(view.node_state, recorded):
        return "its evidence is older than the last repair"
    if recorded.outcome.basis.is_nameless and snapshot.policy.leads_to_service(view.node_state.state):
        return "its evidence names no machine: no serial number and no GPU of it could be read"
    if mismatch := boot.find_mismatch(recorded):
        return mismatch
    if requirement.active and recorded.outcome.active and recorded.outcome.basis.log_gap:
        return f"its evidence may lack what the load caused: {recorded.outcome.basis.log_gap}"
    to = snapshot.policy_state_of(view).pass_to
    if to and snapshot.policy.states[to].in_service and (fault := find_unproved_fault(snapshot, view, recorded)):
        return f"fault {fault.fault_class} on {fault.subject} was recorded after the evidence"
    return ""


def find_required_boot(node_state: NodeState, outcomes: Iterable[RecordedOutcome]) -> RequiredBoot:
    """Return the boot that a verified restart of this stay read back; without one, that of the newest outcome."""
    restarts = {effect.id for effect in node_state.effects if effect.decision == node_state.decision}
    verified = next(
        (repair for repair in reversed(node_state.repairs) if repair.id in restarts and repair.boot_id), None
    )
    if verified:
        return RequiredBoot(verified.boot_id, f"the verified {verified.kind}", is_verified=True)
    with_boot = [recorded for recorded in outcomes if recorded.outcome.basis.boot_id]
    newest = max(
        with_boot,
        key=lambda recorded: (recorded.outcome.basis.after_entry or 0, recorded.seen_at, recorded.id),
        default=None,
    )
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
        since = parse_time(node_state.since)
        return measured >= (max(since, repaired + settle) if node_state.repairs else since)
    if after_entry < max(node_state.stay_seq, node_state.repaired_seq):
        return False
    return not node_state.repairs or not timedelta() <= measured - repaired < settle


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
    numbers = [recorded.outcome.basis.after_entry for recorded in view.latest if phases & set(recorded.outcome.phases)]
    return None if None in numbers else min((number for number in numbers if number is not None), default=known)
