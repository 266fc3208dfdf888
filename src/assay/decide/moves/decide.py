"""Decides what happens next to every node: a pure function of the fleet snapshot.

What a hold forbids, as cordons of others and the profile do; its end, a warning before it, and reminders.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import cached_property

from assay.decide.moves import circuit_breaker, cordons, fault_remedies, held_answers
from assay.decide.moves.blast_radius_limits import LimitCapacity, holds_out_of_service
from assay.decide.moves.cordons import propose_recordon
from assay.decide.moves.corrections import hold_back_correction, is_correction
from assay.decide.moves.excused_failures import drop_excused_faults, drop_explained_drift, propose_known_issue_records
from assay.decide.moves.hand_over import find_hand_over_refusal, list_proofs, propose_hand_over
from assay.decide.moves.manual_moves import (
    SCHEDULER_SILENT,
    find_withdrawal_reason,
    propose_manual_move,
    propose_pending_changes,
)
from assay.decide.moves.proposals import (
    Proposal,
    find_foreign_hold,
    grant_proposal,
    list_arrival_actions,
    refuse_proposal,
)
from assay.decide.moves.proposed_exits import propose_transitions
from assay.decide.moves.remedy_ladder import propose_flapping_escalation
from assay.decide.moves.replacements import PoolPlaces, PoolStanding, Swap, find_swaps, judge_pools, propose_replacement
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.trust.gate import ask_trust
from assay.model.decision import CONFIGURE_IDLE, FLAPPING_RULE, PERSON_RULE, ROLLOUT_RULE, Decision, DecisionCause
from assay.model.errors import AssayError
from assay.model.faults.fault_record import RACK_SERIES, FaultRecord
from assay.model.specs.lifecycle_policy import RACK_RULE_PREFIX
from assay.model.timestamps import format_duration, format_minute, format_time, hours, parse_time


def find_prohibition(snapshot: FleetSnapshot, view: NodeSnapshot, proposal: Proposal) -> DecisionCause | None:
    """Return what forbids this to automation: a hold, others who closed the node, or the profile."""
    hold, profile = view.node_state.hold, view.profile
    if hold:
        return DecisionCause("person", hold.id, f"held by {hold.who}: {hold.reason}")
    if proposal.takes_out and not profile.acts_on_faults:
        return DecisionCause("profile", profile.name, f"profile {profile.name}: faults are tracked, not acted on")
    if cause := find_foreign_hold(snapshot, view, proposal):
        return cause
    needed = set(list_arrival_actions(snapshot, view, proposal))
    if proposal.timing == "pending":
        needed |= set(snapshot.policy.actions_while_pending(proposal.rule_name))
    if missing := sorted(needed - set(profile.actions)):
        return DecisionCause("profile", profile.name, f"profile {profile.name} does not allow: {', '.join(missing)}")
    return None


def propose_hold_actions(snapshot: FleetSnapshot, view: NodeSnapshot) -> Iterator[Proposal]:
    """Yield the release of a hold that has ended; otherwise a warning before its end, and reminders."""
    hold, state = view.node_state.hold, view.node_state.state
    if hold is None:
        return
    if hold.until and parse_time(hold.until) <= snapshot.now:
        over = DecisionCause("person", hold.id, f"{hold.who} held it until {format_minute(hold.until)}: {hold.reason}")
        yield Proposal(state, "record", "holds", "hold-ends", (over,), (hold.id,), "release")
        return
    if hold.until:
        start, end = parse_time(hold.at), parse_time(hold.until)
        warning_time = end - min(timedelta(days=1), (end - start) / 4)  # the last quarter of a short hold
        if warning_time <= snapshot.now:
            text = f"{hold.who}'s hold ends at {format_minute(hold.until)}: {hold.reason}"
            causes = (DecisionCause("person", hold.id, text),)
            yield Proposal(state, "record", "holds", "hold-ends-soon", causes, (hold.id, hold.until), "none")
    age = snapshot.now - parse_time(hold.at)
    times = int(age / hours(snapshot.policy.holds.remind_hours))
    if times >= 1:
        causes = (DecisionCause("person", hold.id, f"held by {hold.who} for {format_duration(age)}: {hold.reason}"),)
        yield Proposal(state, "record", "holds", "hold-reminder", causes, (hold.id, str(times)), "none")


def decide(snapshot: FleetSnapshot, asked: Collection[str] | None = None) -> list[Decision]:
    """Return the decisions that are due and were not made before: at most one move per node.

    `asked` names the nodes to decide about, None for all; the others are only counted. If limits leave room for some
    nodes only, those with the worst faults come first. The order of nodes and outcomes does not change the answer.
    Raises AssayError for a node in a state that the policy does not have.
    """
    for view in snapshot.nodes:
        _reject_unknown_state(snapshot, view)
    snapshot = drop_explained_drift(drop_excused_faults(snapshot))
    bounds = _PassBounds(snapshot)
    decisions: list[Decision] = []
    views = snapshot.nodes if asked is None else [view for view in snapshot.nodes if view.name in asked]
    for view in sorted(views, key=fault_remedies.urgency_key):
        made = _decide_node(snapshot, view, bounds)
        decisions += [decision for decision in made if decision.id not in view.node_state.decisions]
    return decisions


class _PassBounds:
    """The bounds of one pass over the fleet: the limits' capacity, waves by pool, and racks that lack nodes.

    Each bound is computed when a proposal first needs it, because most passes propose no move.
    """

    def __init__(self, snapshot: FleetSnapshot) -> None:
        self._snapshot = snapshot

    @cached_property
    def capacity(self) -> LimitCapacity:
        """The capacity that the limits leave."""
        return LimitCapacity(self._snapshot)

    @cached_property
    def pools(self) -> Mapping[str, PoolStanding]:
        """How each pool stands that declares its capacity."""
        return judge_pools(self._snapshot)

    @cached_property
    def places(self) -> PoolPlaces:
        """The places that pools have in service."""
        return PoolPlaces(self._snapshot.policy, self.pools)

    @cached_property
    def swaps(self) -> Mapping[str, Swap]:
        """The spares that come into service, by name."""
        return find_swaps(self._snapshot, self.pools)

    @cached_property
    def corrections_left(self) -> int:
        """How many corrections may still begin in this hour."""
        hour_ago = format_time(self._snapshot.now - hours(1))
        begun = sum(
            correction.at > hour_ago for view in self._snapshot.nodes for correction in view.node_state.corrections
        )
        return self._snapshot.policy.corrections.per_hour - begun

    @cached_property
    def new_waves(self) -> Mapping[str, str]:
        """The reason of each pool with a new wave of faults."""
        return circuit_breaker.find_new_waves(self._snapshot)

    @cached_property
    def ongoing_waves(self) -> Mapping[str, circuit_breaker.OngoingWave]:
        """The wave of each pool in which one goes on."""
        return circuit_breaker.find_ongoing_waves(self._snapshot)

    @cached_property
    def series(self) -> Mapping[tuple[str, str], list[circuit_breaker.OngoingWave]]:
        """The series of single fault classes by pool, and node where they are not of the whole pool."""
        places = defaultdict[tuple[str, str], list[circuit_breaker.OngoingWave]](list)
        for pool, waves in circuit_breaker.find_series(self._snapshot).items():
            for wave in waves:
                for name in wave.nodes or [""]:
                    places[pool, name].append(wave)
        return places

    @cached_property
    def deadline_waves(self) -> Mapping[str, str]:
        """The reason of each pool with a wave of missed deadlines."""
        return circuit_breaker.find_deadline_waves(self._snapshot)

    @cached_property
    def short_racks(self) -> Mapping[cordons.RackPlace, cordons.ShortRack]:
        """The racks that lack nodes."""
        return cordons.find_short_racks(self._snapshot, self._is_in_wide_series)

    def _is_in_wide_series(self, view: NodeSnapshot, fault: FaultRecord) -> bool:
        """Whether a series of more than its rack holds a fault back from this pass on: no rack is cordoned for it."""
        waves = [wave for wave in self.list_series(view) if RACK_SERIES not in wave.series]
        return not fault.no_wave and any(fault.fault_class in wave.classes for wave in waves)

    def list_series(self, view: NodeSnapshot) -> list[circuit_breaker.OngoingWave]:
        """Return the series that may hold back what a node needs: first those of the whole pool."""
        return [wave for name in ("", view.name) for wave in self.series.get((view.node.pool, name), ())]


def _decide_node(snapshot: FleetSnapshot, view: NodeSnapshot, bounds: _PassBounds) -> Iterator[Decision]:
    """Yield the records, and either the first granted move or the record that it is held back.

    A held-back move blocks all later ones, except the cordon of a whole rack. It blocks none if a person requested it,
    or if the profile lets no fault move the node.
    """
    is_blocked = False
    for proposal in _collect_proposals(snapshot, view, bounds):
        if proposal.timing == "record":
            yield _decide_record(snapshot, view, proposal, bounds)
            continue
        timed, blockers = _resolve_timing(view, proposal)
        if (move := bounds.places.direct(view, timed)) is None:
            continue
        pending = view.node_state.pending
        is_pending = move.timing == "pending" and pending is not None and pending.to == move.to
        if is_pending and move.rule_name != FLAPPING_RULE:
            continue
        if is_blocked and not move.rule_name.startswith(RACK_RULE_PREFIX):
            continue
        decision = _grant_or_refuse(snapshot, view, move, blockers, bounds)
        yield decision
        if decision.timing != "record":
            bounds.places.take(view, decision.to_state, decision.timing)
            return
        if cordon := held_answers.cordon_refused_node(snapshot, view, move, decision, bounds.capacity):
            yield cordon
            return
        is_blocked = _blocks_others(snapshot, view, move)
    if view.node_state.is_held_by_breaker and (
        cordon := held_answers.cordon_held_node(snapshot, view, bounds.capacity)
    ):
        yield cordon


def _blocks_others(snapshot: FleetSnapshot, view: NodeSnapshot, move: Proposal) -> bool:
    """Whether a move that is held back keeps later ones from being made. The order of a rollout does once it is out."""
    if move.rule_name == ROLLOUT_RULE:
        return not snapshot.policy_state_of(view).in_service
    return move.rule_name != PERSON_RULE and (not move.takes_out or view.profile.acts_on_faults)


def _collect_proposals(snapshot: FleetSnapshot, view: NodeSnapshot, bounds: _PassBounds) -> Iterator[Proposal]:
    """Yield every proposal for a node, in order of precedence.

    A pending decision that lost its cause is withdrawn first, so later proposals no longer see it.
    """
    short = bounds.short_racks.get(view.node.rack_place)
    yield from propose_known_issue_records(snapshot, view)
    yield from propose_hold_actions(snapshot, view)
    yield from propose_pending_changes(snapshot, view, short)
    yield from propose_flapping_escalation(snapshot, view)
    if find_withdrawal_reason(snapshot, view.node_state, short):
        view = replace(view, node_state=replace(view.node_state, pending=None))
    yield from propose_hand_over(snapshot, view)
    yield from propose_manual_move(snapshot, view)
    yield from fault_remedies.propose_fault_remedies(snapshot, view)
    yield from propose_transitions(snapshot, view)
    if view.node_state.state == snapshot.policy.spare_state and (swap := bounds.swaps.get(view.name)):
        yield propose_replacement(snapshot, swap)
    yield from cordons.propose_rack_cordon(snapshot.policy, view, short)
    yield from propose_recordon(snapshot, view)


def _decide_record(snapshot: FleetSnapshot, view: NodeSnapshot, proposal: Proposal, bounds: _PassBounds) -> Decision:
    """Return a record. It asks for a ticket only if the profile allows tickets; a series has one for all its nodes."""
    proposal, objection = ask_trust(snapshot, view, proposal)
    if objection:
        return refuse_proposal(snapshot, view, proposal, objection)
    if proposal.remedy == "ticket" and (wave := _find_fault_wave(snapshot, view, proposal, bounds)):
        return refuse_proposal(snapshot, view, proposal, wave)
    if is_correction(proposal):
        proposal = _limit_correction(snapshot, view, proposal, bounds)
    if proposal.remedy == "ticket" and "ticket" not in view.profile.actions:
        proposal = replace(proposal, remedy="none")
    return grant_proposal(snapshot, view, proposal, proposal.blockers)


def _limit_correction(snapshot: FleetSnapshot, view: NodeSnapshot, proposal: Proposal, bounds: _PassBounds) -> Proposal:
    """Return a correction, or the record of what holds it back in the pool or the fleet. It uses up capacity."""
    pool, needs_idle = view.node.pool, proposal.remedy == CONFIGURE_IDLE
    if wave := bounds.new_waves.get(pool):
        return hold_back_correction(proposal, DecisionCause("limit", f"breaker/{pool}", wave))
    if bounds.corrections_left <= 0:
        text = f"held back: {snapshot.policy.corrections.per_hour} corrections have begun in the last hour"
        return hold_back_correction(proposal, DecisionCause("limit", "corrections/fleet", text))
    if needs_idle and (refusal := bounds.capacity.find_refusal(view, proposal.to)):
        return hold_back_correction(proposal, DecisionCause("limit", f"{refusal.limit}/{refusal.where}", refusal.text))
    bounds.corrections_left -= 1
    if needs_idle:
        bounds.capacity.reserve(view, proposal.to)
    return proposal


def _resolve_timing(view: NodeSnapshot, proposal: Proposal) -> tuple[Proposal, tuple[str, ...]]:
    """Return the proposal as of now, and the jobs that it waits for. On an idle node, nothing is pending."""
    if proposal.timing != "pending" or proposal.blockers:
        return proposal, proposal.blockers
    if view.jobs == ():
        return replace(proposal, timing="immediate"), ()
    return proposal, view.jobs or SCHEDULER_SILENT


def _grant_or_refuse(
    snapshot: FleetSnapshot, view: NodeSnapshot, proposal: Proposal, blockers: tuple[str, ...], bounds: _PassBounds
) -> Decision:
    """Return the decision for a move, or a record of what holds the move back. A granted move uses up capacity."""
    if prohibition := (
        find_prohibition(snapshot, view, proposal)
        or find_hand_over_refusal(snapshot, view, proposal.to)
        or _find_pool_refusal(snapshot, view, proposal, bounds)
    ):
        return refuse_proposal(snapshot, view, proposal, prohibition)
    to, is_order = _find_limited_state(snapshot, view, proposal), proposal.rule_name == PERSON_RULE
    rule = snapshot.policy.faults.get(proposal.rule_name)
    is_limited = bool(to) and not (rule and rule.beyond_limits)
    if is_limited and (refusal := bounds.capacity.find_refusal(view, to, is_order=is_order)):
        prohibition = DecisionCause("limit", f"{refusal.limit}/{refusal.where}", refusal.text)
        return refuse_proposal(snapshot, view, proposal, prohibition)
    proposal, untrusted = ask_trust(snapshot, view, proposal)
    if untrusted:
        return refuse_proposal(snapshot, view, proposal, untrusted)
    if to:
        bounds.capacity.reserve(view, to, is_order=is_order)
    proposal = replace(proposal, causes=(*proposal.causes, *list_proofs(snapshot, view, proposal.to)))
    return grant_proposal(snapshot, view, proposal, blockers)


def _find_pool_refusal(
    snapshot: FleetSnapshot, view: NodeSnapshot, proposal: Proposal, bounds: _PassBounds
) -> DecisionCause | None:
    """Return what holds back the whole pool: a wave of faults or missed deadlines, or too many cordoned racks."""
    pool = view.node.pool
    is_rollout = proposal.rule_name == ROLLOUT_RULE and snapshot.policy_state_of(view).in_service
    if (proposal.takes_out or is_rollout) and (wave := _find_fault_wave(snapshot, view, proposal, bounds)):
        return wave
    if proposal.is_deadline and not view.node_state.is_deadline_free and (late := bounds.deadline_waves.get(pool)):
        return DecisionCause("breaker", pool, late)
    if proposal.rule_name.startswith(RACK_RULE_PREFIX):
        short = bounds.short_racks.get(view.node.rack_place)
        if short and short.limit_reason:
            return DecisionCause("limit", f"{proposal.rule_name}/{pool}", short.limit_reason)
    return None


def _find_fault_wave(
    snapshot: FleetSnapshot, view: NodeSnapshot, proposal: Proposal, bounds: _PassBounds
) -> DecisionCause | None:
    """Return what holds back a proposal: a new wave holds all moves, an ongoing one or series its own fault classes.

    What a wave has held for as long as it may goes on, as far as limits allow. So does what came before a person
    cleared the breaker. A fault that a wave holds is left to it, and begins no series.
    """
    pool = view.node.pool
    if proposal.timing != "record" and (new := bounds.new_waves.get(pool)):
        return DecisionCause("breaker", pool, new)
    causes = {fault for cause in proposal.causes for fault in cause.fault_ids}
    faults = [fault for fault in view.node_state.faults if fault.id in causes]
    if faults and all(fault.no_wave or fault_remedies.is_released(snapshot, view, fault) for fault in faults):
        return None
    ongoing, classes = bounds.ongoing_waves.get(pool), {fault.fault_class for fault in faults}
    if ongoing and classes <= ongoing.classes:
        return DecisionCause("breaker", pool, ongoing.reason)
    series = {name: wave for wave in reversed(bounds.list_series(view) if classes else []) for name in wave.classes}
    if not classes or not classes <= series.keys():
        return None
    wave, is_of_wave = series[faults[0].fault_class], any(fault.is_held_by_wave for fault in faults)
    return DecisionCause("breaker", pool if is_of_wave else wave.series, wave.reason)


def _find_limited_state(snapshot: FleetSnapshot, view: NodeSnapshot, proposal: Proposal) -> str:
    """Return the state whose capacity a move takes now, "" for none. A pending move that cordons takes it at once."""
    if proposal.timing == "immediate":
        return proposal.to
    is_cordoned = holds_out_of_service(snapshot.policy, proposal.rule_name) or (
        proposal.rule_name == PERSON_RULE and snapshot.policy.waiting.by_hand
    )
    return view.node_state.state if is_cordoned else ""


def _reject_unknown_state(snapshot: FleetSnapshot, view: NodeSnapshot) -> None:
    state, policy = view.node_state.state, snapshot.policy.name
    if state not in snapshot.policy.states:
        raise AssayError(
            f"{view.name} is in state {state}, which policy {policy} does not have",
            where=snapshot.lines.get((f"LifecyclePolicy/{policy}", "states"), ""),
            fix=f"add the state {state} to the policy again, with a way out of it",
        )
