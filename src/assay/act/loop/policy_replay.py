"""Replays the ledger's faults under the old and the new policy, for a plan: what the change costs, and what it spares.

The cost is bounded: by days, by events, by changed settings, and by values of each. Only nodes with faults are played;
the others count in the size of their pools. Every node starts in service, and counts as idle. Where nothing is
recorded, things take as long as a plan assumes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from assay.decide.moves.cordons import find_rack_companions
from assay.decide.plan.inputs import FleetRevision
from assay.decide.replay.history import HistoryEvent, list_fault_events
from assay.decide.replay.replay_nodes import ReplayDurations, ReplayNodes, ReplayRules
from assay.decide.replay.result import CostModel
from assay.decide.replay.simulator import run_replay
from assay.decide.state.node_state import NodeState
from assay.declare.starter.shipped_specs import find_cost_assumptions
from assay.model.backtest_report import PolicyCostPoint, PolicyCurve, PolicyReplayReport
from assay.model.node import Node
from assay.model.specs.lifecycle_policy import LifecyclePolicy

REPLAYED_DAYS = 30.0
MAX_EVENTS = 2_000
MAX_REPLAYED_EVENTS = 10_000
"""Events of all replays of one plan together: ten CPU seconds at most."""
MAX_SETTINGS = 3


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
    costs = CostModel(*find_cost_assumptions(after.fleet), history_says_use=False)
    replays = _PolicyReplays(before, after, events, costs)
    old, new = replays.run_points([(0, "old", before.policy), (1, "new", after.policy)])
    return PolicyReplayReport(
        REPLAYED_DAYS, faults, nodes, old.costs, new.costs, replays.draw_curves(), costs.jobs_note
    )


class _PolicyReplays:
    """Replays of one history, each under another policy."""

    def __init__(
        self, before: FleetRevision, after: FleetRevision, events: Sequence[HistoryEvent], costs: CostModel
    ) -> None:
        self._before, self._after, self._events, self._costs = before, after, events, costs
        self._durations = ReplayDurations()
        self._left = MAX_REPLAYED_EVENTS // len(events)

    def draw_curves(self) -> tuple[PolicyCurve, ...]:
        """Return the curve of each changed number of the policy, the first ones if there are many."""
        changed = list(list_changed_values(self._before.policy, self._after.policy).items())[:MAX_SETTINGS]
        return tuple(self._draw_curve(path, *values) for path, values in changed if self._left > 1)

    def run_points(self, policies: Sequence[tuple[float, str, LifecyclePolicy]]) -> list[PolicyCostPoint]:
        """Return what each policy costs, measured up to the same moment, at the point with its value and name."""
        self._left -= len(policies)
        fleet, results = self._after.fleet, []
        for _, _, policy in policies:
            rules = ReplayRules(policy, self._before.catalog, fleet.profiles, self._durations)
            nodes = _collect_nodes(policy, fleet.nodes.values(), self._events)
            results.append(run_replay(rules, nodes, self._events))
        until = max(result.until for result in results)
        spent = (self._costs.count(result.exposure.sum_up(until), result.work) for result in results)
        return [
            PolicyCostPoint(value, name, {str(cost): number for cost, number in costs.items()})
            for (value, name, _), costs in zip(policies, spent, strict=True)
        ]

    def _draw_curve(self, path: str, old: float, new: float) -> PolicyCurve:
        """Return the costs with only this number changed: at its old and new value, and around them if that fits."""
        values, names = choose_values(old, new), {old: "old", new: "new"}
        if len(values) > self._left:
            values = sorted((old, new))
        policies = ((value, replace_policy_value(self._before.policy, path, value)) for value in values)
        tried = [(value, names.get(value, ""), policy) for value, policy in policies if policy]
        return PolicyCurve(path, tuple(self.run_points(tried)))


def choose_values(old: float, new: float) -> list[float]:
    """Return values to try: both, one between them, and one on either side; whole numbers if both are."""
    low, high = sorted((old, new))
    tried = {low, high, (low + high) / 2, low / 2, high * 1.5}
    whole = old == int(old) and new == int(new)
    return sorted({float(round(value)) for value in tried} if whole else tried)


def _collect_nodes(policy: LifecyclePolicy, nodes: Iterable[Node], events: Iterable[HistoryEvent]) -> ReplayNodes:
    """Return the nodes with events and their racks if these are one machine; all others only by their number."""
    every, named = {node.name: node for node in nodes}, {event.node for event in events}
    named |= find_rack_companions(policy, every.values(), [every[name] for name in named])
    quiet = Counter(node.pool for name, node in every.items() if name not in named)
    return ReplayNodes({name: every[name] for name in sorted(named)}, {}, quiet)


def list_changed_values(old: LifecyclePolicy, new: LifecyclePolicy) -> dict[str, tuple[float, float]]:
    """Return old and new value of every number that both policies have and that differs, by its dotted path."""
    was, will = dict(_list_numbers(old.model_dump())), dict(_list_numbers(new.model_dump()))
    return {path: (value, will[path]) for path, value in was.items() if path in will and will[path] != value}


def replace_policy_value(policy: LifecyclePolicy, path: str, value: float) -> LifecyclePolicy | None:
    """Return the policy with another number at the dotted path of one that it has; None if it may not have it."""
    whole, default = policy.model_dump(exclude_unset=True), policy.model_dump()
    is_whole = isinstance(dict(_list_numbers(default))[path], int)
    place: Any = whole
    above_default: Any = default
    *above, last = (int(step) if step.isdigit() else step for step in path.split("."))
    for step in above:
        above_default = above_default[step]
        if isinstance(place, dict):
            place.setdefault(step, above_default)
        place = place[step]
    place[last] = int(value) if is_whole and value == int(value) else value
    try:
        return LifecyclePolicy.model_validate(whole)
    except ValueError:  # pydantic's own error is one
        return None


def _list_numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Yield every number of plain data by its dotted path."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _list_numbers(item, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _list_numbers(item, f"{path}.{number}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value
