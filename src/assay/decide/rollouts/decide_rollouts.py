"""Decides what happens next in a rollout: which nodes get their order, what pauses it, when it is finished. Pure.

Failures pause it until a person resumes it, and thereby accepts them. A held node, or a breaker that the rollout did
not open, pauses it for as long as it lasts. The ids of its entries follow from the rollout: none is written twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from assay.decide.moves.blast_radius_limits import is_in_service, is_ordered_out, is_out_of_service
from assay.decide.moves.held_answers import list_open_breakers
from assay.decide.rollouts.node_progress import SETTLED, NodeProgress, judge_progress
from assay.decide.rollouts.rollout_history import RULE_NAMES, Rollout, shorten_id
from assay.decide.rollouts.rollout_waves import (
    RolloutCandidate,
    RolloutCapacity,
    WaveSchedule,
    measure_capacity,
    schedule_waves,
)
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_state import NodeState
from assay.model.entries import rollouts as content
from assay.model.entries.node_entries import DecisionWithdrawnEntry, MoveEntry
from assay.model.entries.rollouts import PauseRule
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.trend_rules import count_open_warnings
from assay.model.text.lists import format_count, format_nodes
from assay.model.timestamps import format_minute, format_time, hours, parse_time

RESUMING_RULES: frozenset[PauseRule] = frozenset({"hold", "breaker"})


@frozen
class RolloutStop:
    """Why a rollout stops: the rule, one line for people, and the nodes because of which."""

    rule: PauseRule
    reason: str
    nodes: tuple[str, ...]


def find_pause(snapshot: FleetSnapshot, rollout: Rollout, progress: Sequence[NodeProgress]) -> RolloutStop | None:
    """Return why a running rollout must stop, None if it need not."""
    return (
        _find_failures(snapshot, rollout, progress)
        or _find_hold(rollout, progress)
        or _find_open_breaker(snapshot, rollout, progress)
    )


def find_resumption(snapshot: FleetSnapshot, rollout: Rollout, progress: Sequence[NodeProgress]) -> str:
    """Return why a paused rollout may go on by itself, "" if it may not."""
    rule = rollout.pause.rule if rollout.pause else ""
    if rule not in RESUMING_RULES or find_pause(snapshot, rollout, progress):
        return ""
    return "no node of it is held any more" if rule == "hold" else "the breaker holds nothing back any more"


def _find_failures(snapshot: FleetSnapshot, rollout: Rollout, progress: Sequence[NodeProgress]) -> RolloutStop | None:
    """Return the failures that stop it: any of a canary, and too many of the nodes that were ordered out."""
    failed = [node for node in progress if node.kind == "failed" and node.node not in rollout.accepted]
    if not failed:
        return None
    rules, names = snapshot.policy.rollouts, tuple(node.node for node in failed)
    kinds = {view.name: (view.node.spec, view.node.pool) for view in snapshot.nodes}
    proven = Counter(kinds.get(node.node) for node in progress if node.kind == "proven")
    if canaries := [node for node in failed if proven[kinds.get(node.node)] < rules.canaries]:
        return RolloutStop("failures", f"canary {canaries[0].node} failed: {canaries[0].why}", names)
    ordered = sum(bool(node.member.order) for node in progress)
    if len(failed) * 100 < rules.failed_percent * ordered:
        return None
    rate = f"{len(failed)} of {ordered} nodes failed ({format_nodes(names)})"
    return RolloutStop("failures", f"{rate}, {rules.failed_percent:g} % stop it: {failed[0].why}", names)


def _find_hold(rollout: Rollout, progress: Sequence[NodeProgress]) -> RolloutStop | None:
    """Return the hold of a node that was ordered out. A held node that waits for its wave is left out of the waves."""
    held = [
        node for node in progress if node.kind == "held" and node.member.order and node.node not in rollout.accepted
    ]
    return RolloutStop("hold", f"{held[0].node} is {held[0].why}", tuple(node.node for node in held)) if held else None


def _find_open_breaker(
    snapshot: FleetSnapshot, rollout: Rollout, progress: Sequence[NodeProgress]
) -> RolloutStop | None:
    """Return the open breaker of a pool with nodes to do. If only nodes of this rollout opened it, they failed."""
    breakers = list_open_breakers(view.node_state for view in snapshot.nodes)
    if not breakers:
        return None
    to_do = {node.node for node in progress if node.kind in ("waiting", "leaving", "out")}
    pools = {view.node.pool for view in snapshot.nodes if view.name in to_do}
    ours = {node.node for node in progress if node.member.order}
    for breaker in breakers:
        if breaker.pool in pools and not set(breaker.nodes) <= rollout.accepted:
            is_ours = set(breaker.nodes) <= ours
            return RolloutStop("failures" if is_ours else "breaker", breaker.reason, breaker.nodes)
    return None


@frozen
class RolloutStep:
    """What is due now. `progress` has every node of the rollout.

    `orders` leave service now, `proven` are back with a new proof. `pause` stops it, `resume` says why the rule that
    stopped it lets it go on, `finish` how it ended. `waits_for` is what the next wave waits for, "" if it goes now.
    """

    progress: tuple[NodeProgress, ...]
    orders: tuple[NodeProgress, ...] = ()
    proven: tuple[NodeProgress, ...] = ()
    pause: RolloutStop | None = None
    resume: str = ""
    finish: str = ""
    waits_for: str = ""


def decide_rollouts(snapshot: FleetSnapshot, rollout: Rollout) -> RolloutStep:
    """Return the next step of an active rollout.

    Every enrolled node is in the snapshot by name. Those that `list_returned_nodes` names have their newest outcomes.
    """
    progress = tuple(judge_progress(snapshot, rollout))
    proven = tuple(node for node in progress if node.kind == "proven" and not node.member.proof)
    if all(node.kind in SETTLED for node in progress):
        return RolloutStep(progress, proven=proven, finish=describe_end(progress))
    if rollout.pause:
        resume = find_resumption(snapshot, rollout, progress)
        pause = f"paused by {rollout.pause.who}: {rollout.pause.reason}"
        return RolloutStep(progress, proven=proven, resume=resume, waits_for=pause)
    if stop := find_pause(snapshot, rollout, progress):
        return RolloutStep(progress, proven=proven, pause=stop, waits_for=stop.reason)
    due = tuple(node for node in progress if node.order_due)
    begin = find_begin(snapshot.policy, rollout)
    if snapshot.now < begin:
        promised = f"customers were told: it begins at {format_minute(format_time(begin))}"
        waits_for = "; ".join(dict.fromkeys([promised, *filter(None, (node.member.reserved for node in progress))]))
        return RolloutStep(progress, orders=due, proven=proven, waits_for=waits_for)
    wave, waits_for = _find_next_wave(snapshot, progress)
    orders = (*due, *(node for node in progress if node.node in wave))
    return RolloutStep(progress, orders=orders, proven=proven, waits_for=waits_for)


def find_begin(policy: LifecyclePolicy, rollout: Rollout) -> datetime:
    """Return when the first node may leave for a rollout: at once if it takes back what the last one brought."""
    return parse_time(rollout.started_at) + hours(0 if rollout.takes_back else policy.rollouts.lead_hours)


def describe_end(progress: Sequence[NodeProgress]) -> str:
    """Return how a rollout ended, in one line."""
    counts = Counter(node.kind for node in progress)
    failed = [node.node for node in progress if node.kind == "failed"]
    parts = [f"{counts['proven']} of {format_count(len(progress), 'node')} proven"]
    parts += [f"failed: {format_nodes(failed)}"] if failed else []
    parts += [f"{counts['left alone']} left alone"] if counts["left alone"] else []
    return ", ".join(parts)


def _find_next_wave(snapshot: FleetSnapshot, progress: Sequence[NodeProgress]) -> tuple[Collection[str], str]:
    """Return the nodes of the wave that goes now; or none, and what it waits for.

    Waves are divided only when nothing else holds the next one: in a large fleet that costs more than all the rest.
    """
    if reason := _find_wait(snapshot, progress):
        return (), reason
    schedule = _schedule(snapshot, progress)
    return (schedule.waves[0].nodes, "") if schedule.waves else ((), schedule.waiting[0].why)


def _find_wait(snapshot: FleetSnapshot, progress: Sequence[NodeProgress]) -> str:
    """Return what the next wave waits for, "" if only the limits may hold it."""
    if absent := [node for node in progress if node.kind == "out" and node.member.is_ordered_out]:
        return f"{_name(absent)} must come back and be proven first"
    # It waits for a node that has its order and still serves, but only so long as the policy says.
    since = snapshot.now - hours(snapshot.policy.rollouts.wait_hours)
    if leaving := [node for node in progress if node.kind == "leaving" and parse_time(node.member.ordered_at) > since]:
        return f"{_name(leaving)} must leave service first: {leaving[0].why}"
    if all(node.kind != "waiting" for node in progress):
        rest = [node for node in progress if node.kind not in SETTLED]
        return f"{_name(rest)}: {rest[0].why}"
    return snapshot.policy.rollouts.describe_closed_hours(snapshot.now)


def _name(some: Sequence[NodeProgress]) -> str:
    return format_nodes([node.node for node in some])


def forecast_waves(snapshot: FleetSnapshot, progress: Sequence[NodeProgress]) -> WaveSchedule:
    """Return the waves that remain, if every node of the rollout that is out now comes back and is proven."""
    absent = {node.node for node in progress if node.kind in ("out", "leaving")}
    later = [replace(node, kind="proven") if node.node in absent else node for node in progress]
    return _schedule(snapshot, later, absent)


def _schedule(snapshot: FleetSnapshot, progress: Sequence[NodeProgress], but_for: Collection[str] = ()) -> WaveSchedule:
    """Return the waves of the nodes that wait, by today's limits; canaries of a kind first, until enough are proven."""
    nodes = {view.name: view.node for view in snapshot.nodes}
    waiting = [nodes[waiter.node] for waiter in progress if waiter.kind == "waiting"]
    names = [done.node for done in progress if done.kind == "proven"]
    proven = [nodes[name] for name in names if name in nodes]
    kinds = Counter((node.spec, node.pool) for node in proven)
    warnings = {view.name: count_open_warnings(view.node_state.faults) for view in snapshot.nodes}
    candidates = [
        RolloutCandidate(node.name, node.pool, node.rack_place, node.spec, 0.0, warnings=warnings[node.name])
        for node in waiting
    ]
    return schedule_waves(candidates, measure_room(snapshot, but_for), snapshot.policy.rollouts.canaries, kinds)


def snapshot_rollout(fleet: Fleet, states: Iterable[NodeState], rollout: Rollout, now: datetime) -> FleetSnapshot:
    """Return the nodes as they are now, by their states alone: without outcomes and jobs."""
    by_node = {state.node: state for state in states}
    views = tuple(
        NodeSnapshot(node, fleet.profile_of(name), by_node[name], jobs=None)
        for name, node in fleet.nodes.items()
        if name in by_node
    )
    issues, checks = fleet.known_issues, fleet.observed_checks
    return FleetSnapshot(now, fleet.policy, views, fleet.lines, issues, checks, rolling_nodes=rollout.unproven)


def measure_room(snapshot: FleetSnapshot, but_for: Collection[str] = ()) -> RolloutCapacity:
    """Return how many more nodes may leave service now, counted as decisions count them. Every node is by name.

    The nodes `but_for` count as back.
    """
    policy = snapshot.policy
    views = [view for view in snapshot.nodes if view.node_state.state in policy.states]
    out = []
    for view in views:
        request = view.node_state.move_request
        is_leaving = request is not None and bool(request.rollout)
        if is_leaving or is_out_of_service(policy, view.node_state) or is_ordered_out(policy, view.node_state):
            out.append(view.node)
    gone = {node.name for node in out}
    serving = [view.node for view in views if view.name in gone or is_in_service(policy, view.node_state)]
    still_out = [node for node in out if node.name not in but_for]
    return measure_capacity(policy.limits, [view.node for view in snapshot.nodes], serving, still_out)


def withdraw_orders(
    policy: LifecyclePolicy, states: Iterable[NodeState], rollout: str, reason: str, at: str, who: str = ""
) -> list[LedgerEntry]:
    """Return the withdrawal of each order of a rollout that is over, where the node still serves."""
    return [
        DecisionWithdrawnEntry(state.move_request.id, reason, who=who).make_entry(
            derive_id("rollout aborted", state.move_request.id), at, state.node
        )
        for state in states
        if policy.is_in_service(state.state) and state.move_request and state.move_request.rollout == rollout
    ]


def make_rollout_entries(rollout: Rollout, step: RolloutStep, at: datetime) -> Iterator[LedgerEntry]:
    """Yield the entries of a step, in their order."""
    stamp = format_time(at)
    for node in step.proven:
        ident = derive_id(content.NodeProvenEntry.kind, rollout.id, node.node)
        yield content.NodeProvenEntry(rollout.id, node.why).make_entry(ident, stamp, node.node)
    if step.finish:
        ident = derive_id(content.RolloutFinishedEntry.kind, rollout.id)
        yield content.RolloutFinishedEntry(rollout.id, step.finish).make_entry(ident, stamp)
    elif stop := step.pause:
        who, ident = RULE_NAMES[stop.rule], derive_id(content.RolloutPausedEntry.kind, rollout.id, str(rollout.pauses))
        paused = content.RolloutPausedEntry(rollout.id, who, stop.reason, stop.rule, stop.nodes)
        yield paused.make_entry(ident, stamp)
    elif step.resume and rollout.pause:
        ident = derive_id(content.RolloutResumedEntry.kind, rollout.id, str(rollout.pauses))
        who = RULE_NAMES[rollout.pause.rule]
        yield content.RolloutResumedEntry(rollout.id, who, step.resume).make_entry(ident, stamp)
    for node in step.orders:
        yield make_order_entry(rollout.id, node.node, node.member.to, node.member.reason, stamp)


def make_order_entry(rollout: str, node: str, to: str, reason: str, stamp: str) -> LedgerEntry:
    """Return the order for one node. A rollout orders a node once."""
    ident = derive_id("rollout order", rollout, node)
    return MoveEntry(to, f"rollout {shorten_id(rollout)}", reason, rollout=rollout).make_entry(ident, stamp, node)
