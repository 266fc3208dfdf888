"""The answer of a replay: decisions, and what they cost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from assay.decide.plan.inputs import AssumedHours
from assay.decide.replay.exposure import Exposure, ExposureMeter
from assay.decide.replay.history import HISTORY_EPOCH, FaultHistory, format_elapsed
from assay.decide.replay.replay_nodes import ReplayRules
from assay.decide.state.node_projection import describe_causes
from assay.decide.state.node_state import NodeState
from assay.model.decision import Decision, DecisionTiming
from assay.model.facts import extend, fact, frozen, inline, shown
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.timestamps import parse_time


def count_costs(exposure: Exposure, tickets: int) -> dict[str, float]:
    """Return the costs of a replay: node-hours, and tickets. Of each, less is better."""
    hours = {
        "out_node_hours": exposure.sum_hours("out"),
        "cordoned_idle_node_hours": exposure.sum_hours("cordoned_idle"),
        "catastrophic_node_hours": exposure.sum_hours("serving", severity="catastrophic"),
        "degraded_node_hours": exposure.sum_hours("serving", severity="degraded"),
    }
    return {name: round(spent, 3) for name, spent in hours.items()} | {"tickets": float(tickets)}


@frozen
class ReplayDecision:
    """A decision, and when it was made."""

    at: datetime
    decision: Decision


@frozen
class BreakerTrip:
    """A breaker that opened: of which pool, when, why, and the nodes that it held back until it closed again."""

    at: datetime
    pool: str
    because: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class ReplayResult:
    """The result of one policy for a history, from the first event to the last consequence.

    `exposure`: how the nodes stood to customers.
    """

    policy: LifecyclePolicy
    start: datetime
    until: datetime
    decisions: tuple[ReplayDecision, ...]
    trips: tuple[BreakerTrip, ...]
    node_states: Mapping[str, NodeState]
    tickets: int
    exposure: ExposureMeter


@fact
class ReplayedDecision:
    """A decision of the policy."""

    time: float | str
    """When it was made, in seconds if the history counts seconds, else in ISO 8601."""
    node: str
    """The node."""
    from_state: str = shown("from")
    """The state before."""
    to_state: str = shown("to")
    """The state after."""
    timing: DecisionTiming
    """Immediate, pending or record."""
    because: str
    """Its reasons."""
    rule: str
    """The rule of the policy, as `file:line name`."""
    remedy: str
    """What is done, "" for nothing."""
    blockers: tuple[str, ...]
    """What it waited for."""


@fact
class ReplayTotals:
    """Sums over all nodes."""

    seconds_out: float
    """How many seconds nodes were out of service, all together."""
    actions: Mapping[str, int]
    """How often each action began."""
    tickets: int
    """How many tickets were opened."""


@fact
class ReplayedTrip:
    """A circuit breaker that opened."""

    time: float | str
    """When, in seconds if the history counts seconds, else in ISO 8601."""
    pool: str
    """The pool."""
    because: str
    """Why."""
    nodes: tuple[str, ...]
    """The nodes that it held back."""


@fact
class NodeHours:
    """The node-hours of a replay, by what the nodes did. All but the last add up to `all`."""

    serving_without_fault: float
    """In service without a fault."""
    serving_with_informational_fault: float
    """In service with an informational fault."""
    serving_with_degraded_fault: float
    """In service with a fault that degrades."""
    serving_with_catastrophic_fault: float
    """In service with a catastrophic fault."""
    cordoned_idle: float
    """Closed to new jobs, without a job."""
    out: float
    """Out of service."""
    not_yet_in_service: float
    """Not yet in service."""
    all: float
    """All node-hours."""
    cordoned_in_use: float
    """Closed to new jobs while the last job still ran: a part of those in service."""


@fact
class ReplayedPolicy:
    """What a policy decides, and what that costs."""

    policy: str
    """The name of the policy."""
    decisions: tuple[ReplayedDecision, ...]
    """The decisions, in order."""
    nodes: Mapping[str, float]
    """How many seconds each node was out of service."""
    totals: ReplayTotals
    """The whole fleet, in numbers."""
    costs: Mapping[str, float]
    """The costs, by name; the name ends with the unit."""
    node_hours: NodeHours
    """The node-hours, by what the nodes did."""
    breaker_trips: tuple[ReplayedTrip, ...]
    """The circuit breakers that opened."""


@fact
class ReplayAnswer:
    """What a policy decides on a history of faults, and what that costs."""

    replayed: ReplayedPolicy = inline()
    events: int
    """How many events the history has."""
    start: float | str = shown("from")
    """The time of the first event, in seconds if the history counts seconds, else in ISO 8601."""
    until: float | str
    """The time of the last consequence."""
    assumed: Mapping[str, AssumedHours]
    """How long each action and wait takes."""
    unknown_faults: tuple[str, ...]
    """The faults that no catalogue defines."""
    unread_fields: tuple[str, ...]
    """The fields of the history that nothing reads."""


def make_replay_answer(history: FaultHistory, rules: ReplayRules, played: ReplayResult) -> ReplayAnswer:
    """Return the whole result."""
    formatter = _ResultFormatter(history.in_seconds, played.until)
    names = {event.fault for event in history.events if event.kind == "fault"}
    return ReplayAnswer(
        replayed=formatter.format_result(played),
        events=len(history.events),
        start=formatter.time(played.start),
        until=formatter.time(played.until),
        assumed=rules.durations.list_used(),
        unknown_faults=tuple(sorted(name for name in names if rules.catalog.find_class(name) is None)),
        unread_fields=history.unread_fields,
    )


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

    def __init__(self, in_seconds: bool, until: datetime) -> None:
        self._in_seconds = in_seconds
        self._until = until

    def time(self, at: datetime) -> float | str:
        """Return a time as the history writes them."""
        return _round_seconds((at - HISTORY_EPOCH).total_seconds()) if self._in_seconds else at.isoformat()

    def text(self, sentence: str) -> str:
        """Return a text with the times in it written as the history counts them."""
        if not self._in_seconds:
            return sentence
        return STORED_TIME.sub(
            lambda match: format_elapsed((parse_time(match[0]) - HISTORY_EPOCH).total_seconds()), sentence
        )

    def format_result(self, played: ReplayResult) -> ReplayedPolicy:
        """Return the result of one policy."""
        out = {
            name: count_seconds_out(played.policy, node_state, self._until)
            for name, node_state in sorted(played.node_states.items())
        }
        exposure = played.exposure.sum_up(self._until)
        begun = Counter(effect.action for state in played.node_states.values() for effect in state.effects)
        return ReplayedPolicy(
            policy=played.policy.name,
            decisions=tuple(self._decision(decision) for decision in played.decisions),
            nodes={name: _round_seconds(seconds) for name, seconds in out.items()},
            totals=ReplayTotals(_round_seconds(sum(out.values())), dict(sorted(begun.items())), played.tickets),
            costs=count_costs(exposure, played.tickets),
            node_hours=_split_node_hours(exposure),
            breaker_trips=tuple(
                ReplayedTrip(self.time(trip.at), trip.pool.partition("/")[0], self.text(trip.because), trip.nodes)
                for trip in played.trips
            ),
        )

    def _decision(self, replayed: ReplayDecision) -> ReplayedDecision:
        time, because = self.time(replayed.at), self.text(describe_causes(replayed.decision.causes))
        return extend(ReplayedDecision, replayed.decision, time=time, because=because)


def _split_node_hours(exposure: Exposure) -> NodeHours:
    return NodeHours(
        serving_without_fault=round(exposure.sum_hours("serving", severity=""), 3),
        serving_with_informational_fault=round(exposure.sum_hours("serving", severity="informational"), 3),
        serving_with_degraded_fault=round(exposure.sum_hours("serving", severity="degraded"), 3),
        serving_with_catastrophic_fault=round(exposure.sum_hours("serving", severity="catastrophic"), 3),
        cordoned_idle=round(exposure.sum_hours("cordoned_idle"), 3),
        out=round(exposure.sum_hours("out"), 3),
        not_yet_in_service=round(exposure.sum_hours("not_yet"), 3),
        all=round(exposure.sum_hours(), 3),
        cordoned_in_use=round(exposure.sum_hours("serving", cordoned=True), 3),
    )


STORED_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?")
"""A time as decisions write it in their reasons."""


def _round_seconds(seconds: float) -> float:
    """Return seconds, without a fraction where there is none."""
    rounded = round(seconds, 6)
    return int(rounded) if rounded == int(rounded) else rounded
