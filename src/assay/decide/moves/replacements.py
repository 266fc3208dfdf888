"""Which spare takes the place of which node that is out for too long, and who becomes a spare instead of serving. Pure.

A pool declares in the inventory what it delivers (`capacity`). The policy says after how many hours out of service a
node is replaced, by its state (`replace_after_hours`), and where spares wait (`spare`). A node that passes its tests
while its pool is full becomes a spare, so repaired nodes fill up what swaps have taken.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from assay.decide.moves.cordons import map_rack_rules
from assay.decide.moves.proposals import Proposal, find_respected_cordon
from assay.decide.moves.proposed_exits import make_phase_cause
from assay.decide.moves.required_checks import are_entry_actions_verified, judge_state_requirements
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_state import NodeState
from assay.decide.state.service_absences import expect_return, list_absences, list_fleet_absences
from assay.model.decision import (
    PERSON_RULE,
    REPLACEMENT_RULE,
    ROLLOUT_RULE,
    DecisionCause,
    ReplacedNode,
    find_rule_name,
)
from assay.model.facts import frozen
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.node_settings import PoolCapacity
from assay.model.timestamps import format_minute, format_time, hours, parse_time


@frozen
class AbsentNode:
    """A node that left service, and when."""

    state: NodeState
    since: datetime


@frozen
class PoolStanding:
    """How many nodes of a pool serve, and who is missing, the longest absent first.

    `awaited` are out, and the policy still waits for them. `overdue` are out for longer, and nobody has taken their
    place yet; of `replaced`, a spare has. `spares` are in the state for spares.
    """

    pool: str
    declared: PoolCapacity
    delivered: int
    awaited: tuple[AbsentNode, ...]
    overdue: tuple[AbsentNode, ...]
    replaced: tuple[AbsentNode, ...]
    spares: tuple[NodeState, ...]

    @property
    def missing(self) -> int:
        """How many nodes fewer serve than the pool declares."""
        return max(0, self.declared.delivered - self.delivered)

    @property
    def wanted(self) -> int:
        """How many spares must come in: nobody waits for the nodes that are missing."""
        return max(0, self.missing - len(self.awaited))

    @property
    def is_short(self) -> bool:
        """Whether spares must come in, and the pool has none."""
        return self.wanted > len(self.spares)

    def expect_enough(self, policy: LifecyclePolicy, states: Iterable[NodeState], now: datetime) -> datetime | None:
        """Return when so many nodes should be back that no spare lacks, None if nothing tells. `states`: of all."""
        absences = list_fleet_absences([policy], states)
        away = (*self.awaited, *self.overdue, *self.replaced)
        times = (expect_return(policy, absent.state, absences, now).find_next(now) for absent in away)
        expected = sorted(at for at in times if at)
        lacking = self.missing - len(self.spares)
        return expected[lacking - 1] if 0 < lacking <= len(expected) else None

    def describe(self) -> str:
        """Return how many of the declared nodes serve, for people."""
        return f"{self.delivered} of {self.declared.delivered} nodes of pool {self.pool} serve"


def judge_pool(
    policy: LifecyclePolicy,
    pool: str,
    declared: PoolCapacity,
    states: Iterable[NodeState],
    now: datetime,
    *,
    uncounted: int = 0,
) -> PoolStanding:
    """Return the standing of a pool. `uncounted`: how many more of its nodes serve than are among `states`."""
    delivered, spares = uncounted, list[NodeState]()
    awaited, overdue, replaced = list[AbsentNode](), list[AbsentNode](), list[AbsentNode]()
    for state in states:
        if policy.is_in_service(state.state):
            delivered += 1
        elif state.state == policy.spare_state:
            spares.append(state)
        elif (absent := _find_absence(policy, state)) is None:
            continue
        elif not _is_overdue(policy, absent, now):
            awaited.append(absent)
        else:
            (replaced if parse_time(state.replaced_at) >= absent.since else overdue).append(absent)
    for absentees in (awaited, overdue, replaced):
        absentees.sort(key=lambda absent: (absent.since, absent.state.node))
    spares.sort(key=lambda state: state.node)
    return PoolStanding(pool, declared, delivered, tuple(awaited), tuple(overdue), tuple(replaced), tuple(spares))


def judge_pools(snapshot: FleetSnapshot) -> dict[str, PoolStanding]:
    """Return the standing of each pool that declares its capacity."""
    states, uncounted = defaultdict[str, list[NodeState]](list), Counter[str]()
    for view in snapshot.nodes if snapshot.capacities else ():
        states[view.node.pool].append(view.node_state)
    for (pool, _, _), count in snapshot.quiet_counts.items() if snapshot.capacities else ():
        uncounted[pool] += count
    return {
        pool: judge_pool(snapshot.policy, pool, declared, states[pool], snapshot.now, uncounted=uncounted[pool])
        for pool, declared in snapshot.capacities.items()
    }


def _find_absence(policy: LifecyclePolicy, state: NodeState) -> AbsentNode | None:
    """Return since when a node that served is out; None for one that did not serve, or was a spare since."""
    last = next(iter(list_absences(state, policy.states_in_service | {policy.spare_state})[-1:]), None)
    if last is None or last.ended_at or not policy.is_in_service(last.transitions[0].origin):
        return None
    return AbsentNode(state, last.began_at)


def _is_overdue(policy: LifecyclePolicy, absent: AbsentNode, now: datetime) -> bool:
    """Whether nobody waits for a node any more. A rollout has bounds of its own, and brings its nodes back."""
    declared = policy.states[absent.state.state]
    leaving = [move for move in absent.state.transitions if policy.is_in_service(move.origin)][-1]
    if declared.final or find_rule_name(leaving.rule) == ROLLOUT_RULE:
        return declared.final
    after = declared.replace_after_hours
    return after is not None and now - absent.since >= hours(after)


@frozen
class Swap:
    """A proven spare comes into service: for a node that is out, or (None) because the pool lacks one anyway."""

    spare: NodeSnapshot
    absent: AbsentNode | None
    standing: PoolStanding


def find_swaps(snapshot: FleetSnapshot, standings: Mapping[str, PoolStanding]) -> dict[str, Swap]:
    """Return the swaps that are due, by the name of the spare. The longest absence gets its spare first."""
    views = {view.name: view for view in snapshot.nodes}
    swaps: dict[str, Swap] = {}
    for standing in standings.values():
        policy = snapshot.policy
        if not standing.wanted or not policy.has_edge(policy.spare_state, policy.service_state):
            continue
        ready = [view for state in standing.spares if _is_proven(snapshot, view := views[state.node])]
        places: list[AbsentNode | None] = [*standing.overdue, *[None] * (standing.wanted - len(standing.overdue))]
        left = standing.wanted
        for absent in places:
            gone = views[absent.state.node] if absent else None
            spare = _choose_nearest(snapshot, ready, gone)
            if spare and left:
                swaps[spare.name] = Swap(spare, absent, standing)
                ready.remove(spare)
                left -= 1
    return swaps


def find_spare(snapshot: FleetSnapshot, node: NodeSnapshot) -> NodeSnapshot | None:
    """Return the proven spare that would take a node's place, None without one."""
    spare_state = snapshot.policy.spare_state
    waiting = [view for view in snapshot.nodes if view.node_state.state == spare_state]
    return _choose_nearest(snapshot, [view for view in waiting if _is_proven(snapshot, view)], node)


def _choose_nearest(
    snapshot: FleetSnapshot, ready: Iterable[NodeSnapshot], gone: NodeSnapshot | None
) -> NodeSnapshot | None:
    fitting = [view for view in ready if gone is None or _fits(snapshot, view, gone)]
    return min(fitting, key=lambda view: (-_count_shared(snapshot, view, gone), view.name), default=None)


def _is_proven(snapshot: FleetSnapshot, view: NodeSnapshot) -> bool:
    """Whether a spare may serve now: it is free, nothing is wrong with it, and it meets what its state requires."""
    state = view.node_state
    is_busy = bool(state.hold or state.pending or state.move_request or state.unsettled_effects)
    faults = [fault for fault in state.faults if fault.is_open and fault.severity != "informational"]
    is_closed = bool(find_respected_cordon(snapshot.policy, view.foreign_cordon))
    if is_busy or is_closed or any(not state.is_repaired(fault) for fault in faults):
        return False
    results = judge_state_requirements(snapshot, view)
    is_met = bool(results) and all(result.is_met for result in results)
    return is_met and are_entry_actions_verified(snapshot, view)


def _fits(snapshot: FleetSnapshot, spare: NodeSnapshot, gone: NodeSnapshot) -> bool:
    """Whether a spare can do what the other did: the same spec, on the same fabric, and in the rack that it needs."""
    ours, theirs = spare.node, gone.node
    if (ours.spec, ours.site, ours.settings.fabric) != (theirs.spec, theirs.site, theirs.settings.fabric):
        return False
    return theirs.spec not in map_rack_rules(snapshot.policy) or ours.rack_place == theirs.rack_place


def _count_shared(snapshot: FleetSnapshot, spare: NodeSnapshot, gone: NodeSnapshot | None) -> int:
    """Return how near a spare is to the node: how many leaf switches and racks they share."""
    if gone is None:
        return 0
    ours, theirs = (snapshot.traits.get(name, frozenset()) for name in (spare.name, gone.name))
    return sum(kind in ("leaf", "rack") for kind, _ in ours & theirs)


def propose_replacement(snapshot: FleetSnapshot, swap: Swap) -> Proposal:
    """Return the move of a spare into service, with what proves it."""
    policy, state = snapshot.policy, swap.spare.node_state
    proofs = tuple(make_phase_cause(result) for result in judge_state_requirements(snapshot, swap.spare))
    path = f"states.{policy.spare_state}"
    if swap.absent is None:
        cause = DecisionCause("pool", state.pool, swap.standing.describe())
        return Proposal(policy.service_state, "immediate", path, REPLACEMENT_RULE, (cause, *proofs))
    gone, since = swap.absent.state, format_time(swap.absent.since)
    serial = gone.serial or next(view.node.serial for view in snapshot.nodes if view.name == gone.node)
    text = f"takes the place of {gone.node} ({serial}), out since {format_minute(since)} and in {gone.state}"
    cause, replaced = DecisionCause("replaced", gone.stay_id, text), ReplacedNode(gone.node, serial, since)
    keys = (gone.node, since)
    return Proposal(
        policy.service_state, "immediate", path, REPLACEMENT_RULE, (cause, *proofs), keys, replaces=replaced
    )


class PoolPlaces:
    """The places that pools still have in service. Each node that comes in takes one, so no pass opens too many."""

    def __init__(self, policy: LifecyclePolicy, standings: Mapping[str, PoolStanding]) -> None:
        self._policy, self._standings = policy, standings
        self._opened = Counter[str]()

    def direct(self, view: NodeSnapshot, move: Proposal) -> Proposal | None:
        """Return the move, to the state of spares if the pool is full; None for a spare that it does not need."""
        standing, spare = self._standings.get(view.node.pool), self._policy.spare_state
        if standing is None or not self._opens(view, move.to, move.timing) or move.rule_name == PERSON_RULE:
            return move
        if standing.missing > self._opened[standing.pool]:
            return move
        if move.rule_name == REPLACEMENT_RULE:
            return None
        if not self._policy.has_edge(view.node_state.state, spare):
            return move
        full = DecisionCause("pool", standing.pool, f"{standing.describe()}: this one is a spare")
        return replace(move, to=spare, causes=(*move.causes, full))

    def take(self, view: NodeSnapshot, to: str, timing: str) -> None:
        """Count a node that comes into service by a decision."""
        self._opened[view.node.pool] += self._opens(view, to, timing)

    def _opens(self, view: NodeSnapshot, to: str, timing: str) -> bool:
        here = view.node_state.state
        return timing == "immediate" and self._policy.is_in_service(to) and not self._policy.is_in_service(here)
