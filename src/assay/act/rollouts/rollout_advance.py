"""Takes the running rollout forward: reads what proves its nodes, decides its next step, and records that step.

Puts together what people see of a rollout: its progress as of now, what it waits for, and how long it will take.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial

from assay.act.actions.action import ActionContext
from assay.act.loop.plan_inputs import DURATION_KINDS, median_action_durations, median_state_durations
from assay.act.loop.projections import read_latest_outcomes, read_node_states
from assay.act.loop.rack_leases import WHOLE_FLEET, RackAssignment
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.adapters.scheduler import PlannedWindow
from assay.decide.plan.inputs import FleetFacts
from assay.decide.plan.rollout_nodes import estimate_stays, find_shortest_route
from assay.decide.rollouts.decide_rollouts import (
    RolloutStep,
    decide_rollouts,
    find_begin,
    forecast_waves,
    make_rollout_entries,
    snapshot_rollout,
)
from assay.decide.rollouts.node_progress import list_returned_nodes
from assay.decide.rollouts.rollout_history import ROLLOUTS, Rollout
from assay.decide.rollouts.rollout_waves import RolloutWave
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_state import NodeState
from assay.declare.spec_values_read_by_checks import JudgingHashes
from assay.fabric.design.node_cables import digest_node_cables
from assay.ledger.ledger_reader import read_projection
from assay.ledger.store import Ledger
from assay.model.decision import REPAIR_ACTIONS
from assay.model.entries.rollouts import CommitAdoptedEntry
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.outcome import RecordedOutcome
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.timestamps import hours


def advance_rollout(fleet_state: FleetSnapshotCache, assignment: RackAssignment = WHOLE_FLEET) -> None:
    """Decide the next step of the active rollout, and append its entries.

    Nothing is done by a controller whose fleet is not at the adopted commit: it would judge by another spec.
    """
    context, history = fleet_state.context, fleet_state.rollouts
    adopted = CommitAdoptedEntry.read(history.adopted).commit if history.adopted else ""
    if history.find_active() is None or adopted != context.fleet.commit:
        return
    with assignment.hold_decision_lock():
        snapshot = fleet_state.build_states_snapshot()
        if rollout := fleet_state.rollouts.find_active():
            read_outcomes = fleet_state.read_returned_outcomes
            proven = add_proof(read_outcomes, lambda: fleet_state.judging_hashes, snapshot, rollout)
            step = decide_rollouts(proven, rollout)
            context.ledger.append(*make_rollout_entries(rollout, step, snapshot.now))


def add_proof(
    read_outcomes: Callable[[Collection[str]], Mapping[str, tuple[RecordedOutcome, ...]]],
    find_hashes: Callable[[], JudgingHashes],
    snapshot: FleetSnapshot,
    rollout: Rollout,
) -> FleetSnapshot:
    """Return the snapshot with the newest outcomes, and today's hashes, of the nodes that are back and not proven."""
    states: dict[str, NodeState] = {view.name: view.node_state for view in snapshot.nodes}
    returned = set(list_returned_nodes(snapshot.policy, rollout, states))
    if not returned:
        return snapshot
    latest, hashes = read_outcomes(returned), find_hashes()

    def prove(view: NodeSnapshot) -> NodeSnapshot:
        if view.name not in returned:
            return view
        return replace(view, latest=latest[view.name], judging_hashes=hashes.of_node(view.name))

    return replace(snapshot, nodes=tuple(prove(view) for view in snapshot.nodes))


WEEK_HOURS = 168
"""No longer is it until waves may begin: the hours of a policy are of days of the week."""
RECENT_ENTRIES = 50_000
"""Estimates are from the newest entries of the ledger: a page must not read all of a large one."""


@frozen
class RolloutReport:
    """A rollout, its next step, the waves to come, and the hours until it is finished if nothing stops it.

    Without a step, and with None for hours, it has ended.
    """

    rollout: Rollout
    step: RolloutStep | None = None
    waves: tuple[RolloutWave, ...] = ()
    hours_left: float | None = None


def find_next_step(
    fleet: Fleet, ledger: Ledger, states: Iterable[NodeState], rollout: Rollout, now: datetime
) -> tuple[FleetSnapshot, RolloutStep]:
    """Return the nodes as they are now, and the next step of an active rollout. Nothing is written."""
    snapshot = snapshot_rollout(fleet, states, rollout, now)
    read_outcomes = partial(read_latest_outcomes, ledger)
    proven = add_proof(read_outcomes, lambda: JudgingHashes(fleet, digest_node_cables), snapshot, rollout)
    return snapshot, decide_rollouts(proven, rollout)


def report_rollout(
    fleet: Fleet, ledger: Ledger, states: Collection[NodeState], rollout: Rollout, now: datetime
) -> RolloutReport:
    """Return the report on a rollout. `states` are those of all nodes. Nothing is written."""
    if not rollout.is_active:
        return RolloutReport(rollout)
    snapshot, step = find_next_step(fleet, ledger, states, rollout, now)
    waves = forecast_waves(snapshot, step.progress).waves
    entries = ledger.entries(kinds=DURATION_KINDS, after=max(0, ledger.head() - RECENT_ENTRIES))
    by_node = {state.node: state for state in states}
    facts = FleetFacts(by_node, median_action_durations(entries), median_state_durations(entries))
    is_out = any(progress.kind in ("out", "leaving", "held") for progress in step.progress)
    hours_left = _estimate_wave(fleet.policy, facts, rollout) * (len(waves) + is_out)
    return RolloutReport(rollout, step, waves, hours_left)


def list_first_waves(context: ActionContext) -> Iterator[tuple[Rollout, PlannedWindow]]:
    """Yield the window of the first wave of each rollout that customers hear of before.

    It has no nodes once one has its order, and while the rollout is paused or has ended: nothing is reserved then.
    """
    fleet, ledger, now, rules = context.fleet, context.ledger, context.clock.now(), context.fleet.policy.rollouts
    for rollout in reversed(read_projection(ledger, ROLLOUTS).rollouts.values()):
        earliest = find_begin(fleet.policy, rollout)
        if now >= earliest + hours(WEEK_HOURS + rules.wait_hours):
            return
        begin = rules.find_open(earliest)
        end = begin + hours(rules.wait_hours)
        if rollout.takes_back or not rules.lead_hours or now >= end:
            continue
        nodes: Collection[str] = ()
        if rollout.status == "running" and not any(member.order for member in rollout.members.values()):
            snapshot, step = find_next_step(fleet, ledger, read_node_states(ledger).values(), rollout, now)
            nodes = [node for wave in forecast_waves(snapshot, step.progress).waves[:1] for node in wave.nodes]
        yield rollout, PlannedWindow(tuple(sorted(nodes)), int(begin.timestamp()), int(end.timestamp()))


def _estimate_wave(policy: LifecyclePolicy, facts: FleetFacts, rollout: Rollout) -> float:
    """Return the hours that a wave takes, by the longest way of the rollout's nodes."""
    longest = 0.0
    for to in {member.to for member in rollout.members.values() if member.to in policy.states}:
        repairs = REPAIR_ACTIONS & set(policy.states[to].entry)
        route = find_shortest_route(policy, policy.service_state, frozenset(repairs))
        longest = max(longest, sum(stay.hours for stay in estimate_stays(policy, facts, route)))
    return longest
