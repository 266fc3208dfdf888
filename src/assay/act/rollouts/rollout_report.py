"""Puts together what people see of a rollout: its progress as of now, what it waits for, and how long it will take."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from assay.act.loop.node_state_and_outcome_cache import read_latest_outcomes
from assay.act.loop.plan_facts import DURATION_KINDS, median_action_durations, median_state_durations
from assay.act.rollouts.rollout_advance import add_proof
from assay.decide.plan.current_fleet_state import FleetFacts
from assay.decide.plan.repair_routes import estimate_stays, find_shortest_route
from assay.decide.rollouts.decide_rollouts import RolloutStep, decide_rollouts, forecast_waves
from assay.decide.rollouts.rollout_history import Rollout
from assay.decide.rollouts.rollout_waves import RolloutWave
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_state import NodeState
from assay.declare.spec_values_read_by_checks import JudgingHashes
from assay.fabric.design.node_cables import digest_node_cables
from assay.ledger.store import Ledger
from assay.model.decision import REPAIR_ACTIONS
from assay.model.fleet import Fleet
from assay.model.specs.lifecycle_policy import LifecyclePolicy

RECENT_ENTRIES = 50_000
"""Estimates are from the newest entries of the ledger: a page must not read all of a large one."""


@dataclass(frozen=True, slots=True)
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
    by_node = {state.node: state for state in states}
    views = tuple(
        NodeSnapshot(node, fleet.profile_of(name), by_node[name], jobs=None)
        for name, node in fleet.nodes.items()
        if name in by_node
    )
    snapshot = FleetSnapshot(
        now, fleet.policy, views, fleet.lines, fleet.known_issues, fleet.observed_checks, rolling_nodes=rollout.unproven
    )
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
    is_out = any(one.kind in ("out", "leaving") for one in step.progress)
    hours = _estimate_wave(fleet.policy, facts, rollout) * (len(waves) + is_out)
    return RolloutReport(rollout, step, waves, hours)


def _estimate_wave(policy: LifecyclePolicy, facts: FleetFacts, rollout: Rollout) -> float:
    """Return the hours that a wave takes, by the longest way of the rollout's nodes."""
    targets = {member.to for member in rollout.members.values() if member.to in policy.states}
    return max((_estimate_way(policy, facts, to) for to in targets), default=0.0)


def _estimate_way(policy: LifecyclePolicy, facts: FleetFacts, to: str) -> float:
    repairs = REPAIR_ACTIONS & set(policy.states[to].entry)
    route = find_shortest_route(policy, policy.service_state, frozenset(repairs))
    return sum(stay.hours for stay in estimate_stays(policy, facts, route))
