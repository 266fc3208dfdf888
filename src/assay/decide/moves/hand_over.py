"""Whether a node may go from one customer to another: what proves that nothing of the first is left on it.

The decision that opens the node names every proof, so it is the record of the hand-over. Without all of them, nothing
opens the node to another customer, not even a person's order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from assay.decide.faults.detection import FaultObservation
from assay.decide.faults.recovery import make_clearance
from assay.decide.faults.telemetry_silence import make_telemetry_fault
from assay.decide.moves.evidence_validity import find_disorder, find_required_boot, find_shortcoming
from assay.decide.moves.proposals import Proposal
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_projection import describe_causes
from assay.decide.state.node_state import NodeState
from assay.model.decision import HAND_OVER, DecisionCause
from assay.model.entries.faults import FaultClearedEntry
from assay.model.node import Node
from assay.model.outcome import RecordedOutcome
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.policy_sections import HandOverProof, HandOverRules, PhaseRequirement
from assay.model.timestamps import parse_time

REFUSED = "hand-over.refused"
"""The fault class of a hand-over that was refused."""


class ProofResult(NamedTuple):
    """One proof of a hand-over: the cause that names what proves it, or (else) why it is `missing`."""

    cause: DecisionCause | None
    missing: str


def serves_another(policy: LifecyclePolicy, node: Node, node_state: NodeState) -> bool:
    """Whether a node last served another customer, or none that is known, than the inventory names."""
    return policy.hand_over is not None and node_state.customer != node.settings.customer


def find_former_customer(snapshot: FleetSnapshot, view: NodeSnapshot) -> str:
    """Return the customer that the node served last and serves no more by the inventory, "" for none."""
    is_another = serves_another(snapshot.policy, view.node, view.node_state)
    return view.node_state.customer if is_another else ""


def judge_hand_over(snapshot: FleetSnapshot, view: NodeSnapshot) -> list[ProofResult]:
    """Return every proof, by what was done and read in the node's present stay. Elsewhere there is none."""
    rules = snapshot.policy.hand_over
    if rules is None or rules.state != view.node_state.state:
        return []
    return [_judge_proof(snapshot, view, rules, name, proof) for name, proof in rules.proofs.items()]


def describe_missing_proofs(snapshot: FleetSnapshot, view: NodeSnapshot) -> list[str]:
    """Return the proofs that the node's stay still lacks, and why."""
    return [result.missing for result in judge_hand_over(snapshot, view) if result.missing]


def list_proofs(snapshot: FleetSnapshot, view: NodeSnapshot, to: str) -> list[DecisionCause]:
    """Return what proves the hand-over, for a decision that opens the node or makes it a spare; nothing for others."""
    is_wanted = snapshot.policy.is_in_service(to) or to == snapshot.policy.spare_state
    proofs = judge_hand_over(snapshot, view) if is_wanted else []
    return [] if any(proof.missing for proof in proofs) else [proof.cause for proof in proofs if proof.cause]


def find_hand_over_refusal(snapshot: FleetSnapshot, view: NodeSnapshot, to: str) -> DecisionCause | None:
    """Return why a node may not be opened to its new customer, None if it may or is not."""
    former, rules = find_former_customer(snapshot, view), snapshot.policy.hand_over
    if not former or rules is None or not snapshot.policy.is_in_service(to):
        return None
    missing = describe_missing_proofs(snapshot, view)
    if view.node_state.state == rules.state and not missing:
        return None
    text = f"{_describe_change(view, former)}: {'; '.join(missing) or f'it opens only out of {rules.state}'}"
    return DecisionCause(HAND_OVER, f"{former}/{view.node.settings.customer}", text)


def propose_hand_over(snapshot: FleetSnapshot, view: NodeSnapshot) -> Iterator[Proposal]:
    """Close a node in service that the inventory gives to another customer; note whom one serves for the first time."""
    rules, node_state, customer = snapshot.policy.hand_over, view.node_state, view.node.settings.customer
    if rules is None or not snapshot.policy_state_of(view).in_service:
        return
    if not serves_another(snapshot.policy, view.node, node_state):
        return
    former = node_state.customer
    text = _describe_change(view, former) if former else f"it serves {customer}"
    causes, keys = (DecisionCause("customer", f"{former}/{customer}", text),), (former, customer)
    if former:
        yield Proposal(rules.closed, "immediate", "hand_over.closed", HAND_OVER, causes, keys)
    else:
        yield Proposal(node_state.state, "record", "hand_over", HAND_OVER, causes, keys, "none")


def judge_refused_hand_overs(
    snapshot: FleetSnapshot, catalog: FaultCatalog
) -> tuple[list[FaultObservation], list[tuple[str, FaultClearedEntry]]]:
    """Return a fault for each hand-over that was refused, and by node the ends of those that are over."""
    faults, ends = list[FaultObservation](), list[tuple[str, FaultClearedEntry]]()
    for view in snapshot.nodes:
        seen = () if view.node_state.unread else view.node_state.faults  # what nobody has read since is over
        known = [fault for fault in seen if fault.is_open and fault.fault_class == REFUSED]
        refusal = _find_refusal(snapshot, view) if find_former_customer(snapshot, view) else ""
        if known and not refusal:
            ends += [(view.name, make_clearance(fault, "nothing refuses its hand-over now")) for fault in known]
        if refusal and not known:
            times = snapshot.now, snapshot.now
            faults.append(make_telemetry_fault(catalog, view.node, "", HAND_OVER, *times, refusal, REFUSED))
    return faults, ends


def _find_refusal(snapshot: FleetSnapshot, view: NodeSnapshot) -> str:
    """Return why the node's last hand-over ended without opening it, "" where it did not, or another has begun."""
    rules, state = snapshot.policy.hand_over, view.node_state
    ended = next((move for move in reversed(state.transitions) if rules and move.origin == rules.state), None)
    if rules is None or state.state == rules.state or ended is None or ended.is_order:
        return ""
    if snapshot.policy.is_in_service(ended.target) or ended.target == snapshot.policy.spare_state:
        return ""
    decision = state.decisions.get(ended.decision)
    return f"{_describe_change(view, state.customer)}: {describe_causes(decision.causes) if decision else ended.rule}"


def _describe_change(view: NodeSnapshot, former: str) -> str:
    now = view.node.settings.customer
    return f"it served {former}, and the inventory gives it to {now or 'no customer'}"


def _judge_proof(
    snapshot: FleetSnapshot, view: NodeSnapshot, rules: HandOverRules, name: str, proof: HandOverProof
) -> ProofResult:
    """Return the proof by the first of its actions that is verified in this stay, and by all of its checks."""
    proved, node_state = dict[str, str](), view.node_state
    if proof.actions:
        effects = [node_state.find_entry_effect(action) for action in proof.actions if node_state.decision]
        done = next((effect for effect in effects if effect and effect.standing == "verified"), None)
        if done is None:
            return ProofResult(None, f"{name}: {' or '.join(proof.actions)} is not verified")
        proved[done.id] = f"{done.action} verified: {done.reason}"
    newest = {(recorded.outcome.check, recorded.outcome.subject): recorded for recorded in view.latest}
    boot, requirement = find_required_boot(node_state, ()), PhaseRequirement(phase=name, fresh_hours=rules.fresh_hours)
    for wanted in proof.checks:
        declared = [(check, str(subject)) for check, subject in view.declared if check.name == wanted]
        if not declared:
            return ProofResult(None, f"{name}: {wanted} is not due on this node")
        for check, subject in declared:
            recorded = newest.get((check.id, subject))
            lacking = find_shortcoming(snapshot, requirement, check, recorded, excused=False)
            lacking = lacking or find_disorder(snapshot, view, requirement, recorded, boot)
            if lacking or (recorded and not _is_of_stay(node_state, recorded)):
                reason = lacking or "its evidence is older than the hand-over"
                return ProofResult(None, f"{name}: {wanted}[{subject}]: {reason}")
        judged = [newest[check.id, subject] for check, subject in declared]
        oldest = min(judged, key=lambda each: (each.outcome.evidence_at, each.id))
        proved[oldest.id] = f"{wanted} passed, on evidence since {oldest.outcome.evidence_at[:19]}"
    return ProofResult(DecisionCause(HAND_OVER, " ".join(proved), f"{name}: {', '.join(proved.values())}"), "")


def _is_of_stay(node_state: NodeState, recorded: RecordedOutcome) -> bool:
    """Whether evidence was read after the node had come into its state."""
    after_entry = recorded.outcome.basis.after_entry
    if after_entry is not None and node_state.stay_seq:
        return after_entry >= node_state.stay_seq
    return parse_time(recorded.measured_at) >= parse_time(node_state.since)
