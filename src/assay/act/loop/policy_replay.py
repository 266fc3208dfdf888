"""Replays the ledger's faults under the old and the new policy, for a plan: what the change costs, and what it spares.

The cost is bounded by days and by events. Only nodes with faults are played; the others count in the size of their
pools. Every node starts in service, and counts as idle. Where nothing is recorded, things take as long as a plan
assumes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from assay.decide.moves.cordons import find_rack_companions
from assay.decide.plan.inputs import FleetRevision, PolicyReplayReport
from assay.decide.replay.history import HistoryEvent, list_fault_events
from assay.decide.replay.replay_nodes import ReplayDurations, ReplayNodes, ReplayRules
from assay.decide.replay.result import ReplayResult, count_costs
from assay.decide.replay.simulator import run_replay
from assay.decide.state.node_state import NodeState
from assay.decide.trust.record import TRUST_CAUSE
from assay.model.node import Node
from assay.model.specs.lifecycle_policy import LifecyclePolicy

REPLAYED_DAYS = 30.0
MAX_EVENTS = 2_000


def replay_policy_change(
    before: FleetRevision, after: FleetRevision, node_states: Mapping[str, NodeState], now: datetime
) -> PolicyReplayReport | None:
    """Return what both policies cost on the faults of the last days; None where there were none."""
    start = now - timedelta(days=REPLAYED_DAYS)
    known = [node for node in after.fleet.nodes.values() if node.profile in after.fleet.profiles]
    events = list_fault_events(node_states.values(), known, start, now)
    if not events:
        return None
    faults, nodes = sum(event.kind == "fault" for event in events), len({event.node for event in events})
    if len(events) > MAX_EVENTS:
        return PolicyReplayReport(REPLAYED_DAYS, faults, nodes, note=f"not replayed: more than {MAX_EVENTS:,} events")
    every, is_trusted = after.fleet.nodes.values(), before.fleet.trust.is_whole and after.fleet.trust.is_whole
    results, moves = [], []
    for revision in (before, after):
        rules = ReplayRules(revision.policy, before.catalog, after.fleet.profiles, ReplayDurations())
        cast = _collect_nodes(revision.policy, every, events)
        results.append(run_replay(rules, cast, events))
        in_force = replace(rules, trust=revision.fleet.trust)
        moves.append({} if is_trusted else _count_moves(run_replay(in_force, cast, events)))
    until = max(result.until for result in results)
    old, new = (count_costs(result.exposure.sum_up(until), result.tickets) for result in results)
    return PolicyReplayReport(REPLAYED_DAYS, faults, nodes, old, new, "", *moves)


def _count_moves(played: ReplayResult) -> Counter[str]:
    """Return how many moves are done, and how many their trust step only lets assay suggest or tell."""
    moves: Counter[str] = Counter()
    for decision in (replayed.decision for replayed in played.decisions):
        if decision.causes[0].kind == TRUST_CAUSE:
            moves["watch" if decision.causes[0].id.startswith("watch") else "suggest"] += 1
        elif decision.timing != "record":
            moves["act"] += 1
    return moves


def _collect_nodes(policy: LifecyclePolicy, nodes: Iterable[Node], events: Iterable[HistoryEvent]) -> ReplayNodes:
    """Return the nodes with events and their racks if these are one machine; all others only by their number."""
    every, named = {node.name: node for node in nodes}, {event.node for event in events}
    named |= find_rack_companions(policy, every.values(), [every[name] for name in named])
    quiet = Counter(node.pool for name, node in every.items() if name not in named)
    return ReplayNodes({name: every[name] for name in sorted(named)}, {}, quiet)
