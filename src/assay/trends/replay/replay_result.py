"""A replay's answer as plain data: decisions, what they cost, and how another policy would have differed.

What came of a replay: the decisions in their order, where every node was when, and when a breaker opened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from assay.lifecycle.node_state import NodeState
from assay.lifecycle.node_state_projection import describe_causes
from assay.model.decision import Decision
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.timestamps import parse_time
from assay.trends.replay.fault_history import HISTORY_EPOCH, FaultHistory
from assay.trends.replay.replay_nodes import ReplayRules


@dataclass(frozen=True, slots=True)
class ReplayDecision:
    """A decision, and when it was made."""

    at: datetime
    decision: Decision


@dataclass(frozen=True, slots=True)
class BreakerTrip:
    """A breaker that opened: whose, when, why, and the nodes that it held back until it closed again."""

    at: datetime
    pool: str
    because: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class ReplayResult:
    """One policy's answer to a history, from its first event to the last thing that followed."""

    policy: LifecyclePolicy
    start: datetime
    until: datetime
    decisions: tuple[ReplayDecision, ...]
    trips: tuple[BreakerTrip, ...]
    node_states: Mapping[str, NodeState]
    tickets: int


def format_replay_result(
    history: FaultHistory, rules: ReplayRules, played: ReplayResult, against: ReplayResult | None = None
) -> dict[str, Any]:
    """Return the whole answer. Two policies are measured up to the same moment, when both have come to rest."""
    until = max(played.until, against.until) if against else played.until
    told = _ResultFormatter(history.in_seconds, until)
    whole = {
        "policy": played.policy.name,
        "events": len(history.events),
        "from": told.time(played.start),
        "until": told.time(until),
        **told.format_result(played),
        "assumed": rules.durations.as_json(),
        "unknown_faults": _list_unknown_faults(history, rules),
        "unread_fields": list(history.unread_fields),
    }
    return whole | ({"against": told.difference(played, against)} if against else {})


def count_seconds_out(policy: LifecyclePolicy, node_state: NodeState, until: datetime) -> float:
    """Return how long a node was out of service up to `until`, from the first time that it was in it."""
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
    """One way to tell times: in seconds where the history did, else in ISO 8601."""

    def __init__(self, in_seconds: bool, until: datetime) -> None:
        self._in_seconds, self._until = in_seconds, until

    def time(self, at: datetime) -> float | str:
        """Return a time as the history writes them."""
        return _round_seconds((at - HISTORY_EPOCH).total_seconds()) if self._in_seconds else at.isoformat()

    def format_result(self, played: ReplayResult) -> dict[str, Any]:
        """Return what came of one policy."""
        out = {
            name: count_seconds_out(played.policy, node_state, self._until)
            for name, node_state in sorted(played.node_states.items())
        }
        return {
            "decisions": [self._decision(one) for one in played.decisions],
            "nodes": {name: _round_seconds(seconds) for name, seconds in out.items()},
            "totals": {
                "seconds_out": _round_seconds(sum(out.values())),
                "actions": _actions(played.node_states.values()),
                "tickets": played.tickets,
            },
            "breaker_trips": [
                {"time": self.time(trip.at), "pool": trip.pool, "because": trip.because, "nodes": list(trip.nodes)}
                for trip in played.trips
            ],
        }

    def difference(self, played: ReplayResult, other: ReplayResult) -> dict[str, Any]:
        """Return what came of another policy, as far as it differs from this one."""
        here, there = self.format_result(played), self.format_result(other)
        return {
            "policy": other.policy.name,
            "totals": there["totals"],
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

    def _decision(self, one: ReplayDecision) -> dict[str, Any]:
        decision = one.decision
        return {
            "time": self.time(one.at),
            "node": decision.node,
            "from": decision.from_state,
            "to": decision.to_state,
            "timing": decision.timing,
            "because": describe_causes(decision.causes),
            "rule": decision.rule,
            "remedy": decision.remedy,
            "blockers": list(decision.blockers),
        }


def _list_missing_decisions(these: list[dict[str, Any]], those: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the decisions that the others lack: on the same node at the same time, to the same effect."""
    known = {_effect(one) for one in those}
    return [one for one in these if _effect(one) not in known]


def _effect(one: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(one[key] for key in ("time", "node", "from", "to", "timing", "remedy"))


def _actions(node_states: Iterable[NodeState]) -> dict[str, int]:
    """Return how often each action was begun."""
    return dict(sorted(Counter(effect.action for node_state in node_states for effect in node_state.effects).items()))


def _list_unknown_faults(history: FaultHistory, rules: ReplayRules) -> list[str]:
    """Return the faults that no catalogue knows: they are treated as it says of the rest."""
    names = {event.fault for event in history.events if event.kind == "fault"}
    return sorted(name for name in names if rules.catalog.find_class(name) is None)


def _round_seconds(seconds: float) -> float:
    """Return seconds, without a fraction where there is none."""
    rounded = round(seconds, 6)
    return int(rounded) if rounded == int(rounded) else rounded
