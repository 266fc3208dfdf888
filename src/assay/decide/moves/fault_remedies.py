"""Proposes the remedies for a node's open faults, by the policy's fault rules and the ladder of remedies.

A fault that the circuit breaker held back counts again only after newer evidence shows it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from assay.decide.faults.identity import is_identity_fault
from assay.decide.faults.incidents import list_incidents
from assay.decide.moves.corrections import MatchedFault, propose_corrections
from assay.decide.moves.proposals import Proposal
from assay.decide.moves.remedy_ladder import find_rung, is_at_or_above, is_left_to_people
from assay.decide.moves.required_checks import list_entry_actions
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.lemon_score import find_lemon
from assay.decide.state.node_state import NodeState
from assay.model.decision import CONFIGURE, REPAIR_ACTIONS, DecisionCause
from assay.model.faults.fault_record import SEVERITIES, FaultRecord
from assay.model.specs.fault_relations import FaultRelations
from assay.model.specs.policy_sections import FaultRule
from assay.model.timestamps import hours, parse_time

MAX_FAULT_CAUSES = 20


def urgency_key(view: NodeSnapshot) -> tuple[int, str, str]:
    """Return a key that sorts nodes: the worst fault first, then the oldest, then by name."""
    faults = _sort_worst_first(find_unanswered_faults(view), {})
    if not faults:
        return (len(SEVERITIES), "", view.name)
    return (SEVERITIES.index(faults[0].severity), faults[0].first_seen, view.name)


def propose_fault_remedies(snapshot: FleetSnapshot, view: NodeSnapshot) -> Iterator[Proposal]:
    """Yield records, and at most one move: that of the worst fault. Its causes are all faults that ask for a move.

    What follows from another fault asks for no ticket of its own, and for no move once that fault has been answered.
    Another machine comes first: no remedy of another fault is for it. While the node is left to people because it
    flaps, faults that would only wait ask for no move.
    """
    moves: list[Proposal] = []
    is_other_machine = False
    corrected: list[MatchedFault] = []
    in_use = view.jobs is None or bool(view.jobs)
    leads, since = find_leads(snapshot.relations, view.node_state), view.node_state.since
    for fault in _sort_worst_first([*find_unanswered_faults(view), *list_released_faults(snapshot, view)], leads):
        state, lead = view.node_state.state, leads.get(fault.id)
        name, rule = snapshot.policy.find_fault_rule(state, fault.fault_class, fault.severity, fault.blame, in_use)
        if rule.remedy == CONFIGURE:
            corrected.append(MatchedFault(fault, name, rule))
            continue
        if rule.timing == "pending" and is_left_to_people(view.node_state):
            continue
        proposal = _make_proposal(snapshot, view, fault, name, rule)
        # What an earlier move did about the lead has not helped: then the symptom says something new.
        is_answered = lead and (lead.response == "waits" or (lead.response == "acted" and lead.responded_at >= since))
        if is_answered or (lead and proposal.timing == "record"):
            continue
        if proposal.timing == "record":
            yield proposal
        else:
            is_other_machine |= is_identity_fault(fault)
            moves.append(proposal)
    if corrected:
        yield from propose_corrections(snapshot, view, corrected)
    if not moves:
        return
    # A repair that is under way may cause the faults seen meanwhile; other faults will show again after it.
    repairs = [standing for action, standing in list_entry_actions(snapshot, view) if action in REPAIR_ACTIONS]
    if is_other_machine or all(standing in ("verified", "failed") for standing in repairs):
        causes = shorten_fault_causes([cause for move in moves for cause in move.causes])
        causes += tuple(make_lemon_causes(snapshot, view))
        keys = tuple(key for move in moves for key in move.identity_keys)
        yield replace(moves[0], causes=causes, identity_keys=keys)


def find_leads(relations: FaultRelations, node_state: NodeState) -> dict[str, FaultRecord]:
    """Return, by the id of a fault, another one of its incident that decides: a worse one, or what it follows from."""
    present = {f.id: f for f in node_state.faults if f.is_open and not node_state.is_repaired(f)}
    leads: dict[str, FaultRecord] = {}
    for incident in list_incidents(relations, node_state) if len(present) > 1 else ():
        members = [present[symptom.id] for symptom in incident.symptoms if symptom.id in present]
        lead = min(members, key=lambda fault: (SEVERITIES.index(fault.severity), fault.remedy == "none"), default=None)
        leads |= {fault.id: lead for fault in members if lead and fault is not lead}
    return leads


def find_unanswered_faults(view: NodeSnapshot) -> list[FaultRecord]:
    """Return the open faults that no decision has acted on yet, and that appeared after the last repair."""
    unrepaired = (fault for fault in view.node_state.faults if fault.is_open and not view.node_state.is_repaired(fault))
    return [
        fault
        for fault in unrepaired
        if (is_still_failing(view, fault) if fault.is_held_by_wave else fault.response == "")
    ]


def list_released_faults(snapshot: FleetSnapshot, view: NodeSnapshot) -> list[FaultRecord]:
    """Return the faults that only a log told and that the breaker has held for as long as it may."""
    held = [fault for fault in view.node_state.faults if fault.is_open and fault.response == "breaker"]
    return [fault for fault in held if is_released(snapshot, view, fault) and not view.node_state.is_repaired(fault)]


def is_released(snapshot: FleetSnapshot, view: NodeSnapshot, fault: FaultRecord) -> bool:
    """Whether the breaker has held a fault as long as it may. It holds what checks see as long as they see it.

    A fault that was cleared, and held again by a new wave, is free when that wave is over. A series ends by a person.
    """
    if fault.response == "breaker" and fault.no_wave:
        return not is_still_failing(view, fault)  # that is an answer of its own
    if not fault.is_held_by_wave or "check" in fault.marks:
        return False
    seen = {
        (recorded.outcome.fault, recorded.outcome.subject)
        for recorded in view.latest
        if recorded.outcome.verdict == "fail"
    }
    if (fault.fault_class, fault.subject) in seen:
        return False
    return snapshot.now - parse_time(fault.responded_at) >= hours(snapshot.policy.breaker.held_hours)


def is_still_failing(view: NodeSnapshot, fault: FaultRecord) -> bool:
    """Whether evidence newer than the breaker's response shows the fault of a check again."""
    return any(
        recorded.outcome.verdict == "fail"
        and (recorded.outcome.fault, recorded.outcome.subject) == (fault.fault_class, fault.subject)
        and parse_time(recorded.measured_at) > parse_time(fault.responded_at)
        for recorded in view.latest
    )


def make_lemon_causes(snapshot: FleetSnapshot, view: NodeSnapshot) -> list[DecisionCause]:
    """Return the lemon score of a node that is a lemon, as the cause of a decision; nothing for another node."""
    lemon = find_lemon(snapshot.policy, view.node_state)
    return [DecisionCause("lemon", view.name, str(lemon))] if lemon else []


def make_fault_cause(fault: FaultRecord) -> DecisionCause:
    """Return a fault as the cause of a decision."""
    times = f", {fault.count} times" if fault.count > 1 else ""
    detail = f": {fault.detail}" if fault.detail else ""
    return DecisionCause("fault", fault.id, f"{fault.fault_class} on {fault.subject}{times}{detail}")


def is_for_people(snapshot: FleetSnapshot, view: NodeSnapshot, fault: FaultRecord) -> bool:
    """Whether the policy's rule for a fault moves no node."""
    kind, in_use = (fault.fault_class, fault.severity, fault.blame), view.jobs is None or bool(view.jobs)
    return snapshot.policy.find_fault_rule(view.node_state.state, *kind, in_use)[1].timing == "record"


def make_fault_keys(fault: FaultRecord) -> tuple[str, ...]:
    """Return the identity keys of a proposal for a fault. A cleared breaker lets the same be decided anew."""
    return (fault.id, fault.severity, *([fault.no_wave] if fault.no_wave else []))


def shorten_fault_causes(causes: Sequence[DecisionCause]) -> tuple[DecisionCause, ...]:
    """Return fault causes: the first MAX_FAULT_CAUSES of them, and one more cause with the ids of the rest."""
    rest = causes[MAX_FAULT_CAUSES:]
    if not rest:
        return tuple(causes)
    more = DecisionCause("faults", " ".join(cause.id for cause in rest), f"and {len(rest)} more faults")
    return (*causes[:MAX_FAULT_CAUSES], more)


def _sort_worst_first(faults: Iterable[FaultRecord], leads: Collection[str]) -> list[FaultRecord]:
    def order(fault: FaultRecord) -> tuple[int, bool, bool, str, str]:
        rank = SEVERITIES.index(fault.severity)
        return rank, not is_identity_fault(fault), fault.id in leads, fault.first_seen, fault.id

    return sorted(faults, key=order)


def _make_proposal(
    snapshot: FleetSnapshot, view: NodeSnapshot, fault: FaultRecord, name: str, rule: FaultRule
) -> Proposal:
    """Return what a rule proposes for a fault. If the policy has no edge to the rule's state, that is a record."""
    remedy: str = fault.remedy if rule.remedy == "class" else rule.remedy
    to, timing = rule.to, rule.timing
    if to is None and timing != "record":
        remedy, to = _climb(snapshot, view, fault, remedy)
    if timing == "record" or to is None or not snapshot.policy.has_edge(view.node_state.state, to):
        to, timing = view.node_state.state, "record"
    return Proposal(
        to=to,
        timing=timing,
        policy_path=f"faults.{name}",
        rule_name=name,
        causes=(make_fault_cause(fault),),
        identity_keys=make_fault_keys(fault),
        remedy=remedy,
        takes_out=timing != "record",
    )


def _climb(snapshot: FleetSnapshot, view: NodeSnapshot, fault: FaultRecord, remedy: str) -> tuple[str, str | None]:
    """Return the remedy that is due, and its state; no state if no rung has the remedy. A lemon starts higher."""
    ladder, lemon = snapshot.policy.ladder, snapshot.policy.lemon
    rung = find_rung(ladder, view.node_state, fault, remedy, snapshot.now)
    if rung and lemon and lemon.then and not is_at_or_above(ladder, rung[0], lemon.then):
        start = lemon.then if find_lemon(snapshot.policy, view.node_state) else remedy
        rung = find_rung(ladder, view.node_state, fault, start, snapshot.now)
    return (rung[0], rung[1].to) if rung else (remedy, None)
