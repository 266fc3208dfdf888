"""Makes the entries that follow from a decision or a fault.

Their ids follow from their contents. So an entry that is appended twice is in the ledger once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from assay.decide.faults.detection import FaultObservation, count_sightings, detect_faults
from assay.decide.faults.identity import mark_stranger, select_own
from assay.decide.faults.recovery import (
    OutcomeReader,
    find_clearances,
    find_ended_consequences,
    find_explained_faults,
    find_identity_recoveries,
    find_lapsed_signals,
    find_measured_recoveries,
    find_overridden_faults,
    find_quiet_recoveries,
    make_clearance,
)
from assay.decide.moves.evidence_validity import find_proof_number, is_unproved
from assay.decide.moves.excused_failures import drop_excused_outcomes, select_proving_outcomes
from assay.decide.state.fleet_snapshot import NodeSnapshot
from assay.decide.state.node_state import NodeState
from assay.model.clock import MAX_CLOCK_SKEW
from assay.model.decision import Decision
from assay.model.entries.faults import FaultClearedEntry, FaultEntry
from assay.model.entries.node_entries import (
    DecisionEntry,
    DecisionWithdrawnEntry,
    NodeEnrolledEntry,
    NodeLeftEntry,
    NodeRenamedEntry,
    NodeReplacedEntry,
    ReleaseEntry,
    TransitionEntry,
)
from assay.model.evidence import EvidenceDocument
from assay.model.facts import extend
from assay.model.faults.sightings import find_check_sightings
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.node import Node
from assay.model.outcome import RecordedOutcome
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.timestamps import format_time, parse_time


def make_enrolled_entry(
    node: str, pool: str, state: str, at: datetime, serial: str = "", reason: str = "", *, acts: bool = False
) -> LedgerEntry:
    """Return the first entry of a machine."""
    ident = derive_id("enrolled", node, *([serial] if serial else []))
    return NodeEnrolledEntry(pool, state, serial, reason, acts).make_entry(ident, format_time(at), node)


def make_rename_entry(machine: NodeState, node: Node, at: datetime) -> LedgerEntry:
    """Return the entry that gives a machine another name."""
    ident = derive_id("renamed", machine.named_by, node.name)
    return NodeRenamedEntry(node.serial, machine.node, node.pool).make_entry(ident, format_time(at), node.name)


def make_left_entry(machine: NodeState, new: str, at: datetime) -> LedgerEntry:
    """Return the entry that ends a machine's old name."""
    ident = derive_id("left", machine.named_by, new)
    return NodeLeftEntry(new).make_entry(ident, format_time(at), machine.node)


def make_decision_entries(
    policy: LifecyclePolicy, node: NodeSnapshot, decision: Decision, at: datetime
) -> tuple[LedgerEntry, ...]:
    """Return the entries of a decision, to be appended together.

    An immediate decision is a transition too. A record may withdraw a pending decision or release a hold. A decision
    that takes the node back into service clears its open faults, but those that may be newer than its evidence.
    """
    stamp = format_time(at)
    entries = [DecisionEntry.from_decision(decision).make_entry(decision.id, stamp, decision.node)]
    if decision.timing != "immediate":
        return (*entries, *_make_record_entries(decision, stamp))
    move = TransitionEntry(decision.from_state, decision.to_state, decision.id)
    entries.append(move.make_entry(derive_id("transition", decision.id), stamp, decision.node))
    if gone := decision.replaces:
        serial = node.node_state.serial or node.node.serial
        swap = NodeReplacedEntry(node.node.pool, gone.serial, decision.node, serial, gone.since, decision.id)
        entries.append(swap.make_entry(derive_id(swap.kind, decision.id), stamp, gone.node))
    if policy.states[decision.to_state].in_service:
        reason, number = f"back in {decision.to_state} by decision {decision.id}", find_proof_number(policy, node)
        entries += [
            make_cleared_entry(decision.node, make_clearance(fault, reason, fault.seq), at)
            for fault in node.node_state.faults
            if fault.is_open and not is_unproved(node.node_state, fault, number)
        ]
    return tuple(entries)


def _make_record_entries(decision: Decision, at: str) -> Iterator[LedgerEntry]:
    """Yield what a record changes in the state of the node."""
    cause = decision.causes[0]
    if decision.remedy == "withdraw":
        withdrawn = DecisionWithdrawnEntry(cause.id, cause.text, by=decision.id)
        yield withdrawn.make_entry(derive_id("withdrawn", decision.id), at, decision.node)
    if decision.remedy == "release":
        release = ReleaseEntry("assay", cause.text)
        yield release.make_entry(derive_id("released", decision.id), at, decision.node)


def make_fault_entries(
    fleet: Fleet,
    node_state: NodeState,
    now: datetime,
    evidence: EvidenceDocument | None = None,
    latest: Sequence[RecordedOutcome] = (),
    scheduled: Sequence[RecordedOutcome] | None = None,
    last_gpus: Mapping[str, str] | None = None,
    read_outcomes: OutcomeReader = lambda _: (),
) -> list[LedgerEntry]:
    """Return the entries of the faults that evidence and outcomes add to a node, and of those that they end.

    `latest` are the node's newest outcomes; they count in states that watch their phase. The outcomes of a `scheduled`
    run count in any state. Failures that a known issue excuses, or of checks that only observe, are no faults. Outcomes
    with a date in the future, or of another machine, do not count. `last_gpus` says in which GPU each serial number was
    seen last.
    `read_outcomes` reads older outcomes of the node.
    """
    node, catalog = fleet.nodes[node_state.node], fleet.fault_catalog
    evidence = evidence and mark_stranger(fleet, node_state, evidence)
    latest = _drop_future(select_own(node, latest, node_state), now)
    if scheduled is not None:
        scheduled = _drop_future(select_own(node, scheduled, node_state), now)
    judged = latest if scheduled is None else scheduled
    counting = drop_excused_outcomes(judged, node, fleet.known_issues, fleet.observed_checks, now)
    if scheduled is None:
        spec = fleet.spec_of(node.name)
        faults = detect_faults(catalog, fleet.policy, node, spec, node_state, evidence, counting, last_gpus)
    else:
        most = fleet.policy.intake.node.open_faults
        faults = count_sightings(catalog, node, node_state, find_check_sightings(catalog, counting), most)
    proofs = select_proving_outcomes(latest, fleet.observed_checks)
    over = find_clearances(node_state, proofs, read_outcomes)
    over += find_measured_recoveries(catalog, node_state, proofs)
    over += find_ended_consequences(catalog.fault_relations, node_state, over, proofs)
    over += find_lapsed_signals(node_state, now)
    if evidence is not None and not evidence.stranger:
        over += find_quiet_recoveries(catalog, node_state, evidence)
        over += find_identity_recoveries(node_state, evidence, latest)
    seen_again = {fault.id for fault in faults}
    ended = [clearance for clearance in over if clearance.fault not in seen_again]
    ended += find_overridden_faults(catalog, node_state, faults)
    ended += find_explained_faults(catalog, node_state, faults)
    cleared = [make_cleared_entry(node.name, clearance, now) for clearance in ended]
    return [*(make_fault_entry(fault, now) for fault in faults), *cleared]


def _drop_future(outcomes: Sequence[RecordedOutcome], now: datetime) -> list[RecordedOutcome]:
    return [recorded for recorded in outcomes if parse_time(recorded.measured_at) <= now + MAX_CLOCK_SKEW]


def make_fault_entry(fault: FaultObservation, at: datetime) -> LedgerEntry:
    """Return the entry of a fault that was seen, or seen again."""
    marks = sorted(f"{source} {mark}" for source, mark in fault.marks.items())
    content = extend(FaultEntry, fault, fault=fault.id)
    ident = derive_id(fault.id, fault.severity, str(fault.count), *marks)
    return content.make_entry(ident, format_time(at), fault.node)


def make_cleared_entry(node: str, clearance: FaultClearedEntry, at: datetime) -> LedgerEntry:
    """Return the entry that ends a fault."""
    number = [str(clearance.seen_up_to)] if clearance.seen_up_to else []
    return clearance.make_entry(derive_id("cleared", clearance.fault, *number), format_time(at), node)
