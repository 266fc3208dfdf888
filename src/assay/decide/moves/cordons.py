"""Cordons what must be closed and reads as open, and the nodes of racks that are one machine and lack too many nodes.

No job may start in a state that is not in service, however a node came there: an open node gets jobs, even in the
middle of a repair. The policy says how often, in how many hours, assay cordons a node that somebody opened. After that,
assay leaves the node to people until the window has room again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from assay.decide.moves.blast_radius_limits import is_in_service, is_out_of_service
from assay.decide.moves.proposals import Proposal, grant_proposal
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_state import EffectRecord, LostCordon, NodeState
from assay.model.decision import CLOSING_ACTIONS, REPAIR_ACTIONS, STATE_CAUSE, ActionName, Decision, DecisionCause
from assay.model.facts import frozen
from assay.model.faults.fault_record import RACK_SERIES, FaultRecord
from assay.model.node import Node
from assay.model.specs.lifecycle_policy import RACK_RULE_PREFIX, LifecyclePolicy
from assay.model.timestamps import format_duration, format_minute, hours, parse_time

RECORDON_REMEDY = "cordon"
"""The remedy of a decision that cordons a node because its scheduler reads it as open."""
CORDONS_RULE = "cordons"


def propose_recordon(snapshot: FleetSnapshot, view: NodeSnapshot) -> Iterator[Proposal]:
    """Yield a new cordon of the node, or a ticket that asks people to find out who opens it.

    Yields nothing if a person holds the node, its profile forbids cordons, or its scheduler does not answer.
    """
    state = view.node_state
    if not reads_as_open(snapshot.policy, view) or state.hold or "cordon" not in view.profile.actions:
        return
    policy, effect = snapshot.policy.cordons, find_last_cordon(state)
    seen = "its scheduler reads it as open for jobs" + (f", with {', '.join(view.jobs)} on it" if view.jobs else "")
    if effect is None:
        causes = (DecisionCause(STATE_CAUSE, state.stay_id, f"no job may start in {state.state}, and {seen}"),)
        yield Proposal(state.state, "record", CORDONS_RULE, CORDONS_RULE, causes, (state.stay_id,), RECORDON_REMEDY)
        return
    recent = [
        lost
        for lost in state.lost_cordons
        if not is_first_cordon(state, lost) and snapshot.now - parse_time(lost.at) < hours(policy.window_hours)
    ]
    seen = f"{effect.action} of {format_minute(effect.at)} is gone: {seen}"
    if len(recent) < policy.again:
        text = f"{seen}; closed again ({len(recent) + 1} of {policy.again} in {policy.window_hours:g} h)"
        kind, remedy = "effect", RECORDON_REMEDY
    else:
        text = f"{seen}; {_describe_escalation(snapshot, recent)}"
        kind = "opened"
        remedy = "ticket"
    causes = (DecisionCause(kind, effect.id, text),)
    yield Proposal(state.state, "record", CORDONS_RULE, CORDONS_RULE, causes, (effect.id,), remedy)


def _describe_escalation(snapshot: FleetSnapshot, recent: Sequence[LostCordon]) -> str:
    first = min(parse_time(cordon.at) for cordon in recent)
    until = first + hours(snapshot.policy.cordons.window_hours)
    return (
        f"opened {len(recent)} times in {format_duration(snapshot.now - first)} and closed again each time, "
        f"so it is left open until {until:%Y-%m-%d %H:%M} UTC: find who opens it (slurmctld's log, the API server's "
        "audit log), or `assay hold` it"
    )


def decide_recordons(snapshot: FleetSnapshot) -> list[Decision]:
    """Return the decisions that cordon nodes again. They need no other evidence, so they may be made at any time."""
    decisions = [
        (view, grant_proposal(snapshot, view, proposal))
        for view in snapshot.nodes
        for proposal in propose_recordon(snapshot, view)
        if proposal.remedy == RECORDON_REMEDY
        if snapshot.trust.find(view.node.pool, ("cordon",)).step == "act"
    ]
    return [decision for view, decision in decisions if decision.id not in view.node_state.decisions]


def must_be_closed(policy: LifecyclePolicy, node_state: NodeState) -> bool:
    """Whether no job may start on a node: in each state that does not serve, and while it waits, cordoned, to leave."""
    state, pending = policy.states.get(node_state.state), node_state.pending
    waits = pending is not None and "cordon" in policy.actions_while_pending(pending.rule)
    return state is not None and (not state.in_service or waits)


def reads_as_open(policy: LifecyclePolicy, view: NodeSnapshot) -> bool:
    """Whether a node must be closed, its scheduler reads it as open, and nothing that closes it is under way."""
    state = view.node_state
    if view.cordon != "" or not must_be_closed(policy, state):
        return False
    decision, asked = state.decision, policy.states[state.state].entry if state.decision else []
    if state.pending:
        decision, asked = state.pending.decision, policy.actions_while_pending(state.pending.rule)
    first = next((action for action in asked if action in CLOSING_ACTIONS), None)
    is_asked = first is not None and not state.hold and not state.find_effect(decision, first)
    return not is_asked and not any(effect.action == "cordon" for effect in state.unsettled_effects)


def is_first_cordon(node_state: NodeState, lost: LostCordon) -> bool:
    """Whether nobody had opened the node: nothing had closed it yet."""
    decision = node_state.decisions.get(lost.decision)
    return decision is not None and any(cause.kind == STATE_CAUSE for cause in decision.causes)


def find_last_cordon(node_state: NodeState) -> EffectRecord | None:
    """Return what closed a node since it was last given back, None if nothing did."""
    recordons = {lost.decision for lost in node_state.lost_cordons}
    for effect in reversed(node_state.effects):
        if effect.action == "uncordon":
            return None
        if effect.action in CLOSING_ACTIONS and effect.standing == "verified":
            return effect
        if effect.action == "cordon" and effect.standing == "failed" and effect.decision in recordons:
            return effect
    return None


def list_recordon_effects(
    policy: LifecyclePolicy, node_state: NodeState, reason: str
) -> list[tuple[str, ActionName, str]]:
    """Return the effects that an open node needs: decision, action, and `why` it is out. The cordon comes first.

    assay drains its jobs only if the remaining work needs an empty node.
    """
    last = node_state.lost_cordons[-1] if node_state.lost_cordons else None
    pending = node_state.pending.decision if node_state.pending else ""
    if last is None or last.stay_id != node_state.stay_id or last.pending_decision != pending:
        return []
    drains = () if node_state.pending else _list_drains(policy, node_state)
    words = reason if is_first_cordon(node_state, last) else f"{reason} (closed again, after it was opened)"
    return [(last.decision, action, words) for action in ("cordon", *drains)]


def _list_drains(policy: LifecyclePolicy, node_state: NodeState) -> Sequence[ActionName]:
    state = policy.states[node_state.state]
    entry = state.entry if node_state.decision else []
    own = [effect for effect in node_state.effects if effect.decision == node_state.decision]
    done = {effect.action for effect in own if effect.standing == "verified"}
    drains: list[ActionName] = [action for action in entry if action in ("drain", "drain-now")]
    if REPAIR_ACTIONS & (set(entry) - done):
        return drains or ["drain"]
    return drains if state.until_idle else ()


RackPlace = tuple[str, str]
"""Site and rack, as `Node.rack_place` returns them."""


@frozen
class ShortRack:
    """A rack with more nodes out than its rule allows, and why.

    `limit_reason` names the limit that forbids the cordon of the other nodes, "" for none.
    """

    rack: RackPlace
    rule: str
    reason: str
    limit_reason: str = ""


def find_rack_companions(policy: LifecyclePolicy, nodes: Iterable[Node], changed: Iterable[Node]) -> set[str]:
    """Return the names of all nodes in the racks of changed nodes, for racks that are one machine."""
    rules = map_rack_rules(policy)
    racks = {node.rack_place for node in changed if node.spec in rules} if rules else set()
    return {node.name for node in nodes if node.rack_place in racks} if racks else set()


def find_short_racks(
    snapshot: FleetSnapshot, is_held_back: Callable[[NodeSnapshot, FaultRecord], bool]
) -> dict[RackPlace, ShortRack]:
    """Return the racks that lack too many nodes. If a limit is reached, cordoned racks stay cordoned.

    `is_held_back` says of a fault whether the breaker is about to hold it back. Such a fault breaks no node.
    """
    rules = map_rack_rules(snapshot.policy)
    racks: dict[tuple[RackPlace, str], list[NodeSnapshot]] = defaultdict(list)
    for view in snapshot.nodes if rules else ():
        if name := rules.get(view.node.spec):
            racks[view.node.rack_place, name].append(view)
    candidates = list(_find_candidates(snapshot.policy, racks, is_held_back))
    return dict(_apply_rack_limits(snapshot.policy, candidates))


def propose_rack_cordon(policy: LifecyclePolicy, view: NodeSnapshot, short: ShortRack | None) -> Iterator[Proposal]:
    """Yield the cordon of a node in service, until its rack is complete."""
    if short is None or view.node_state.pending or not is_in_service(policy, view.node_state):
        return
    causes = (DecisionCause("rack", "/".join([short.rack[0], f"rack-{short.rack[1]}"]), short.reason),)
    state = view.node_state.state
    name = f"{RACK_RULE_PREFIX}{short.rule}"
    blockers = (short.reason,)
    yield Proposal(state, "pending", name, name, causes, remedy="cordon", takes_out=True, blockers=blockers)


def map_rack_rules(policy: LifecyclePolicy) -> dict[str, str]:
    """Return the rule for the racks of each node spec: the first that names the spec."""
    return {spec: name for name, rule in reversed(policy.racks.items()) for spec in rule.node_specs}


@frozen
class _ShortRackCandidate:
    """A rack that lacks too many nodes: its rule, its nodes, those of them that are out, how many served."""

    rack: RackPlace
    rule: str
    nodes: list[NodeSnapshot]
    out: list[NodeSnapshot]
    lost: int

    @property
    def limit_key(self) -> tuple[str, str]:
        """The rule and the pool under which the rack counts."""
        return self.rule, min(view.node.pool for view in self.nodes)

    @property
    def waiting(self) -> list[NodeSnapshot]:
        """The cordoned nodes that wait until the rack is complete."""
        name = f"{RACK_RULE_PREFIX}{self.rule}"
        waits = ((view, view.node_state.pending) for view in self.nodes)
        return [view for view, pending in waits if pending and pending.rule_name == name]


def _find_candidates(
    policy: LifecyclePolicy,
    racks: Mapping[tuple[RackPlace, str], list[NodeSnapshot]],
    is_held_back: Callable[[NodeSnapshot, FaultRecord], bool],
) -> Iterator[_ShortRackCandidate]:
    for (rack, name), views in sorted(racks.items()):
        lost = {view.name for view in views if _is_lost(policy, view, is_held_back)}
        missing = (view for view in views if view.name in lost or not is_in_service(policy, view.node_state))
        out = sorted(missing, key=lambda view: view.name)
        if len(out) > policy.racks[name].more_than:
            yield _ShortRackCandidate(rack, name, views, out, len(lost))


def _apply_rack_limits(
    policy: LifecyclePolicy, candidates: list[_ShortRackCandidate]
) -> Iterator[tuple[RackPlace, ShortRack]]:
    """Yield every short rack. Cordoned racks stay cordoned; of the others, a pool may have only so many at once."""
    # A rack that is being brought up lost no node: it does not count.
    takes_room = {short.rack: short.lost > policy.racks[short.rule].more_than for short in candidates}
    cordoned = Counter(short.limit_key for short in candidates if takes_room[short.rack] and short.waiting)
    for short in candidates:
        rule = policy.racks[short.rule]
        key = short.limit_key
        waits = bool(short.waiting)
        others = cordoned[key] - waits
        full = takes_room[short.rack] and not _is_cordoned(short) and others >= rule.at_once
        cordoned[key] += takes_room[short.rack] and not full and not waits
        limit = f"held back: {rule.at_once} racks of pool {key[1]} are cordoned already, {rule.at_once} may be"
        names = ", ".join(f"{view.name} ({view.node_state.state})" for view in short.out)
        lack = f"lacks {len(short.out)} of {rule.of} nodes, {rule.more_than} may be out"
        reason = f"rack {short.rack[1]} {lack}: {names}"
        yield short.rack, ShortRack(short.rack, short.rule, reason, limit if full else "")


def _is_cordoned(candidate: _ShortRackCandidate) -> bool:
    """Whether the rack is cordoned. A held node does not count: its cordon may be old."""
    return any(view.node_state.hold is None for view in candidate.waiting)


def _is_lost(
    policy: LifecyclePolicy, view: NodeSnapshot, is_held_back: Callable[[NodeSnapshot, FaultRecord], bool]
) -> bool:
    """Whether a node served and is now out or broken. A node that never served is missing, but not lost."""
    node_state = view.node_state
    if is_out_of_service(policy, node_state):
        return True
    if not is_in_service(policy, node_state) or not view.profile.acts_on_faults:
        return False
    worst = [fault for fault in node_state.faults if fault.is_open and fault.severity == "catastrophic"]
    waits = (fault for fault in worst if fault.response != "breaker" or RACK_SERIES in fault.series)
    unanswered = (fault for fault in waits if not node_state.is_repaired(fault))
    return any(not is_held_back(view, fault) for fault in unanswered)
