"""A replay's result as plain data: decisions, their cost, and the differences from another policy.

It holds the decisions in their order, the stays of every node, and the times when a breaker opened.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from assay.decide.replay.costs import CostModel, ReplayTally, compare_costs, format_costs_json, split_node_hours
from assay.decide.replay.history import HISTORY_EPOCH, FaultHistory, format_elapsed
from assay.decide.replay.replay_nodes import ReplayRules
from assay.decide.state.node_projection import describe_causes
from assay.decide.state.node_state import NodeState
from assay.model.decision import Decision
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.timestamps import parse_time

if TYPE_CHECKING:
    from assay.decide.replay.costs import ReplayAnswer, ReplayDifference, ReplayedDecision, ReplayedPolicy


@dataclass(frozen=True, slots=True)
class ReplayDecision:
    """A decision, and when it was made."""

    at: datetime
    decision: Decision


@dataclass(frozen=True, slots=True)
class BreakerTrip:
    """A breaker that opened: of which pool, when, why, and the nodes that it held back until it closed again."""

    at: datetime
    pool: str
    because: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class ReplayResult:
    """The result of one policy for a history, from the first event to the last consequence."""

    policy: LifecyclePolicy
    start: datetime
    until: datetime
    decisions: tuple[ReplayDecision, ...]
    trips: tuple[BreakerTrip, ...]
    node_states: Mapping[str, NodeState]
    tally: ReplayTally


def format_replay_result(
    history: FaultHistory,
    rules: ReplayRules,
    costs: CostModel,
    played: ReplayResult,
    against: ReplayResult | None = None,
) -> ReplayAnswer:
    """Return the whole result. Both policies are measured up to the same moment: when both have no events left."""
    until = max(played.until, against.until) if against else played.until
    formatter = _ResultFormatter(history.in_seconds, until, costs)
    result = formatter.format_result(played)
    names = {event.fault for event in history.events if event.kind == "fault"}
    whole: ReplayAnswer = {
        "policy": played.policy.name,
        "events": len(history.events),
        "from": formatter.time(played.start),
        "until": formatter.time(until),
        "decisions": result["decisions"],
        "nodes": result["nodes"],
        "totals": result["totals"],
        "costs": result["costs"],
        "weighted_node_hours": result["weighted_node_hours"],
        "node_hours": result["node_hours"],
        "breaker_trips": result["breaker_trips"],
        "cost_assumptions": costs.as_json(),
        "assumed": rules.durations.as_json(),
        "unknown_faults": sorted(name for name in names if rules.catalog.find_class(name) is None),
        "unread_fields": list(history.unread_fields),
    }
    if against:
        whole["against"] = formatter.difference(played, against)
    return whole


def count_seconds_out(policy: LifecyclePolicy, node_state: NodeState, until: datetime) -> float:
    """Return how long a node was out of service up to `until`, since it first was in service."""
    states = [
        node_state.transitions[0].origin if node_state.transitions else node_state.state,
        *(move.target for move in node_state.transitions),
    ]
    times = [parse_time(node_state.enrolled_at), *(parse_time(move.at) for move in node_state.transitions), until]
    served, out = False, 0.0
    for state, begin, end in zip(states, times, times[1:], strict=False):
        if policy.states[state].in_service:
            served = True
        elif served:
            out += (end - begin).total_seconds()
    return out


class _ResultFormatter:
    """Formats times: in seconds if the history does so, else in ISO 8601."""

    def __init__(self, in_seconds: bool, until: datetime, costs: CostModel) -> None:
        self._in_seconds = in_seconds
        self._until = until
        self._costs = costs

    def time(self, at: datetime) -> float | str:
        """Return a time as the history writes them."""
        return _round_seconds((at - HISTORY_EPOCH).total_seconds()) if self._in_seconds else at.isoformat()

    def text(self, sentence: str) -> str:
        """Return a text with the times in it written as the history counts them."""
        return STORED_TIME.sub(_format_stored_time, sentence) if self._in_seconds else sentence

    def format_result(self, played: ReplayResult) -> ReplayedPolicy:
        """Return the result of one policy."""
        out = {
            name: count_seconds_out(played.policy, node_state, self._until)
            for name, node_state in sorted(played.node_states.items())
        }
        costs = self._costs.count(played.tally, self._until)
        weighted = self._costs.weigh(costs)
        begun = Counter(effect.action for state in played.node_states.values() for effect in state.effects)
        return {
            "decisions": [self._decision(decision) for decision in played.decisions],
            "nodes": {name: _round_seconds(seconds) for name, seconds in out.items()},
            "totals": {
                "seconds_out": _round_seconds(sum(out.values())),
                "actions": dict(sorted(begun.items())),
                "tickets": int(costs["tickets"]),
            },
            "costs": format_costs_json(costs),
            "weighted_node_hours": None if weighted is None else round(weighted, 3),
            "node_hours": split_node_hours(played.tally.exposure.sum_up(self._until)),
            "breaker_trips": [
                {
                    "time": self.time(trip.at),
                    "pool": trip.pool,
                    "because": self.text(trip.because),
                    "nodes": list(trip.nodes),
                }
                for trip in played.trips
            ],
        }

    def difference(self, played: ReplayResult, other: ReplayResult) -> ReplayDifference:
        """Return the differences of another policy's result from this one."""
        here, there = self.format_result(played), self.format_result(other)
        return {
            "policy": other.policy.name,
            "totals": there["totals"],
            "costs": there["costs"],
            "weighted_node_hours": there["weighted_node_hours"],
            "node_hours": there["node_hours"],
            "compared": compare_costs(here["costs"], there["costs"]),
            "breaker_trips": there["breaker_trips"],
            "seconds_out_more": _round_seconds(here["totals"]["seconds_out"] - there["totals"]["seconds_out"]),
            "nodes": {
                name: {"seconds_out": seconds, "against": there["nodes"][name]}
                for name, seconds in here["nodes"].items()
                if seconds != there["nodes"][name]
            },
            "decisions": {
                "only_here": _list_missing_decisions(here["decisions"], there["decisions"]),
                "only_there": _list_missing_decisions(there["decisions"], here["decisions"]),
            },
        }

    def _decision(self, replayed: ReplayDecision) -> ReplayedDecision:
        decision = replayed.decision
        return {
            "time": self.time(replayed.at),
            "node": decision.node,
            "from": decision.from_state,
            "to": decision.to_state,
            "timing": decision.timing,
            "because": self.text(describe_causes(decision.causes)),
            "rule": decision.rule,
            "remedy": decision.remedy,
            "blockers": list(decision.blockers),
        }


def _list_missing_decisions(these: list[ReplayedDecision], those: list[ReplayedDecision]) -> list[ReplayedDecision]:
    """Return the decisions that the others lack; same node, time and effect mean the same decision."""
    known = {_effect(decision) for decision in those}
    return [decision for decision in these if _effect(decision) not in known]


def _effect(decision: ReplayedDecision) -> tuple[float | str, ...]:
    return decision["time"], decision["node"], decision["from"], decision["to"], decision["timing"], decision["remedy"]


STORED_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?")
"""A time as decisions write it in their reasons."""


def _format_stored_time(match: re.Match[str]) -> str:
    return format_elapsed((parse_time(match[0]) - HISTORY_EPOCH).total_seconds())


def _round_seconds(seconds: float) -> float:
    """Return seconds, without a fraction where there is none."""
    rounded = round(seconds, 6)
    return int(rounded) if rounded == int(rounded) else rounded
