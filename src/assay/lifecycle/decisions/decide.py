"""What happens next to every node: a pure function of the situation."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from assay.lifecycle.decisions import circuit_breaker, fault_remedies, rack_cordons
from assay.lifecycle.decisions.blast_radius_limits import LimitCapacity, holds_out_of_service
from assay.lifecycle.decisions.holds_and_manual_moves import propose_hold_actions, propose_manual_move
from assay.lifecycle.decisions.known_issues import drop_excused_faults, propose_known_issue_records
from assay.lifecycle.decisions.lost_cordons import propose_recordon
from assay.lifecycle.decisions.pending_decisions import (
    SCHEDULER_SILENT,
    find_withdrawal_reason,
    propose_pending_changes,
)
from assay.lifecycle.decisions.proposals import Proposal, grant_proposal, refuse_proposal
from assay.lifecycle.decisions.transition_rules import propose_transitions
from assay.lifecycle.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.model.decision import Decision, DecisionCause
from assay.model.errors import AssayError
from assay.model.specs.lifecycle_policy import PERSON_RULE, RACK_RULE_PREFIX


def decide(situation: FleetSnapshot, asked: Collection[str] | None = None) -> list[Decision]:
    """Return what is to be decided now and was not decided before, at most one move a node.

    `asked` are the nodes to decide about, all by default; the others are only counted.

    The worst faults come first where limits leave room for some nodes only. Neither the order of the nodes nor that
    of their outcomes changes the answer. Raises Trouble for a node in a state that the policy does not have.
    """
    for view in situation.nodes:
        _reject_unknown_state(situation, view)
    situation = drop_excused_faults(situation)
    bounds = _PassBounds(situation)
    answer: list[Decision] = []
    views = situation.nodes if asked is None else [view for view in situation.nodes if view.name in asked]
    for view in sorted(views, key=fault_remedies.urgency_key):
        made = _decide_node(situation, view, bounds)
        answer += [decision for decision in made if decision.id not in view.node_state.decision_ids]
    return answer


class _PassBounds:
    """What bounds a pass: room, pools with a wave of faults or of missed deadlines, and racks that lack nodes.

    Each is counted over the fleet when a wish first asks for it: most passes wish for no move.
    """

    def __init__(self, situation: FleetSnapshot) -> None:
        self._situation = situation

    @cached_property
    def capacity(self) -> LimitCapacity:
        """What the limits still leave."""
        return LimitCapacity(self._situation)

    @cached_property
    def new_waves(self) -> Mapping[str, str]:
        """The pools with a wave of faults."""
        return circuit_breaker.find_new_waves(self._situation)

    @cached_property
    def ongoing_waves(self) -> Mapping[str, circuit_breaker.OngoingWave]:
        """The pools in which a wave goes on."""
        return circuit_breaker.find_ongoing_waves(self._situation)

    @cached_property
    def deadline_waves(self) -> Mapping[str, str]:
        """The pools with a wave of missed deadlines."""
        return circuit_breaker.find_deadline_waves(self._situation)

    @cached_property
    def short_racks(self) -> Mapping[rack_cordons.RackPlace, rack_cordons.ShortRack]:
        """The racks that lack nodes."""
        return rack_cordons.find_short_racks(self._situation)


def _decide_node(situation: FleetSnapshot, view: NodeSnapshot, bounds: _PassBounds) -> Iterator[Decision]:
    """Yield the records, and the first wish of a move that is granted or was held back.

    A move that is held back stands in the way of all others but that of a whole rack. It does not where a person
    asked for it, nor where the profile lets no fault move the node at all.
    """
    held = False
    for wish in _collect_proposals(situation, view, bounds.short_racks.get(rack_cordons.rack_place(view.node))):
        if wish.timing == "record":
            yield _make_record(situation, view, wish)
            continue
        wish_now, blockers = _resolve_timing(view, wish)
        if _is_already_pending(view, wish_now) or (held and not wish.rule_name.startswith(RACK_RULE_PREFIX)):
            continue
        made = _grant_or_refuse(situation, view, wish_now, blockers, bounds)
        yield made
        if made.timing != "record":
            return
        held = wish.rule_name != PERSON_RULE and (not wish.takes_out or view.profile.acts_on_faults)


def _collect_proposals(
    situation: FleetSnapshot, view: NodeSnapshot, short: rack_cordons.ShortRack | None
) -> Iterator[Proposal]:
    """Yield what should happen to a node. What has lost its cause is withdrawn, and wishes nothing on the way."""
    yield from propose_known_issue_records(situation, view)
    yield from propose_hold_actions(situation, view)
    yield from propose_pending_changes(situation, view, short)
    if find_withdrawal_reason(situation.policy, view.node_state, short):
        view = replace(view, node_state=replace(view.node_state, pending=None))
    yield from propose_manual_move(situation, view)
    yield from fault_remedies.propose_fault_remedies(situation, view)
    yield from propose_transitions(situation, view)
    yield from rack_cordons.propose_rack_cordon(situation.policy, view, short)
    yield from propose_recordon(situation, view)


def _grant_or_refuse(
    situation: FleetSnapshot, view: NodeSnapshot, wish: Proposal, blockers: tuple[str, ...], bounds: _PassBounds
) -> Decision:
    """Return the decision for a move, or the record of what stands in its way."""
    if why := _find_prohibition(situation, view, wish) or _find_pool_refusal(view, wish, bounds):
        return refuse_proposal(situation, view, wish, why)
    reaches = _find_limited_state(situation, view, wish)
    if reaches and (refusal := bounds.capacity.find_refusal(view, reaches)):
        return refuse_proposal(
            situation, view, wish, DecisionCause("limit", f"{refusal.limit}/{refusal.where}", refusal.text)
        )
    if reaches:
        bounds.capacity.reserve(view, reaches)
    return grant_proposal(situation, view, wish, blockers)


def _find_pool_refusal(view: NodeSnapshot, wish: Proposal, bounds: _PassBounds) -> DecisionCause | None:
    """Return what holds a whole pool back: a wave of faults, one of missed deadlines, or too many racks cordoned."""
    pool = view.node.pool
    wave = (wish.takes_out and _find_wave(view, wish, bounds)) or (wish.is_deadline and bounds.deadline_waves.get(pool))
    if wave:
        return DecisionCause("breaker", pool, wave)
    short = (
        bounds.short_racks.get(rack_cordons.rack_place(view.node))
        if wish.rule_name.startswith(RACK_RULE_PREFIX)
        else None
    )
    return (
        DecisionCause("limit", f"{wish.rule_name}/{pool}", short.limit_reason) if short and short.limit_reason else None
    )


def _find_wave(view: NodeSnapshot, wish: Proposal, bounds: _PassBounds) -> str:
    """Return the wave that holds back what faults wish for: a new one everything, one that lasts only what is of it."""
    if wave := bounds.new_waves.get(view.node.pool):
        return wave
    lasting, cited = (
        bounds.ongoing_waves.get(view.node.pool),
        {cause.id for cause in wish.causes if cause.kind == "fault"},
    )
    classes = {known.fault_class for known in view.node_state.faults if known.id in cited}
    return lasting.reason if lasting and classes <= lasting.classes else ""


def _make_record(situation: FleetSnapshot, view: NodeSnapshot, wish: Proposal) -> Decision:
    """Return a record. A ticket that the profile does not allow is not asked for."""
    allowed = wish.remedy != "ticket" or "ticket" in view.profile.actions
    return grant_proposal(situation, view, wish if allowed else replace(wish, remedy="none"), wish.blockers)


def _resolve_timing(view: NodeSnapshot, wish: Proposal) -> tuple[Proposal, tuple[str, ...]]:
    """Return the wish as of now, with the jobs that it waits for: on an idle node nothing is pending."""
    if wish.timing != "pending" or wish.blockers:
        return wish, wish.blockers
    if view.jobs == ():
        return replace(wish, timing="immediate"), ()
    return wish, view.jobs or SCHEDULER_SILENT


def _is_already_pending(view: NodeSnapshot, wish: Proposal) -> bool:
    pending = view.node_state.pending
    return wish.timing == "pending" and pending is not None and pending.to == wish.to


def _find_prohibition(situation: FleetSnapshot, view: NodeSnapshot, wish: Proposal) -> DecisionCause | None:
    """Return who or what forbids automation to do this at all: a person's hold, or the profile."""
    held, profile = view.node_state.hold, view.profile
    if held:
        return DecisionCause("person", held.id, f"held by {held.who}: {held.reason}")
    if wish.takes_out and not profile.acts_on_faults:
        return DecisionCause("profile", profile.name, f"profile {profile.name}: faults are tracked, not acted on")
    entry = situation.policy.states[wish.to].entry if wish.to != view.node_state.state else []
    needed = [*entry, *_list_interim_actions(situation, wish)]
    if missing := sorted(set(needed) - set(profile.actions)):
        return DecisionCause("profile", profile.name, f"profile {profile.name} does not allow: {', '.join(missing)}")
    return None


def _list_interim_actions(situation: FleetSnapshot, wish: Proposal) -> list[str]:
    """Return what is done at once for a wish that waits."""
    return [*situation.policy.actions_while_pending(wish.rule_name)] if wish.timing == "pending" else []


def _find_limited_state(situation: FleetSnapshot, view: NodeSnapshot, wish: Proposal) -> str:
    """Return the state whose room a move takes now: a pending one that cordons takes the node out where it is."""
    if wish.timing == "immediate":
        return wish.to
    return view.node_state.state if holds_out_of_service(situation.policy, wish.rule_name) else ""


def _reject_unknown_state(situation: FleetSnapshot, view: NodeSnapshot) -> None:
    if view.node_state.state not in situation.policy.states:
        raise AssayError(
            f"{view.name} is in state {view.node_state.state}, which policy {situation.policy.name} does not have",
            where=situation.lines.get((f"LifecyclePolicy/{situation.policy.name}", "states"), ""),
            fix=f"draw the state {view.node_state.state} again, with a way out of it",
        )
