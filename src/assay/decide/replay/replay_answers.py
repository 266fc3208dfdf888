"""The shapes of what `assay replay` prints with `--format json`."""

from __future__ import annotations

from typing import Any, NotRequired

from typing_extensions import TypedDict

from assay.model.decision import DecisionTiming

ReplayedDecision = TypedDict(
    "ReplayedDecision",
    {
        "time": float | str,
        "node": str,
        "from": str,
        "to": str,
        "timing": DecisionTiming,
        "because": str,
        "rule": str,
        "remedy": str,
        "blockers": list[str],
    },
)
ReplayedDecision.__doc__ = """A decision of the policy.

- `time`: when it was made, in seconds if the history counts seconds, else in ISO 8601. `node`: the node. `from`: the
  state before. `to`: the state after. `timing`: immediate, pending or record. `because`: its reasons. `rule`: the rule
  of the policy, as `file:line name`. `remedy`: what is done, "" for nothing. `blockers`: what it waited for.
"""


class ReplayTotals(TypedDict):
    """Sums over all nodes."""

    seconds_out: float
    """How many seconds nodes were out of service, all together."""
    actions: dict[str, int]
    """How often each action began."""
    tickets: int
    """How many tickets were opened."""


class ReplayedTrip(TypedDict):
    """A circuit breaker that opened."""

    time: float | str
    """When, in seconds if the history counts seconds, else in ISO 8601."""
    pool: str
    """The pool."""
    because: str
    """Why."""
    nodes: list[str]
    """The nodes that it held back."""


class NodeHoursSplit(TypedDict):
    """The node-hours of the replay, by what the nodes did. All but the last add up to `all`."""

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


class CostAssumptionsAnswer(TypedDict):
    """What is assumed about costs."""

    name: str
    """The name of the CostAssumptions."""
    owner: str
    """The team that answers for them."""
    where: str
    """The file and line; "" if assay's own are used."""
    jobs: dict[str, Any]
    """What is assumed about jobs, with a `note`."""
    people: dict[str, Any]
    """How many hours people need for a ticket, a dossier and a certification, each with its source."""
    weights: dict[str, Any]
    """How many node-hours one of each cost is worth, each with its source."""


class AssumedSpan(TypedDict):
    """How long something takes."""

    hours: float
    """In hours."""
    source: str
    """Where the number comes from."""


class ComparedCosts(TypedDict):
    """The names of costs."""

    lower_here: list[str]
    """The costs that are lower under the policy."""
    lower_there: list[str]
    """The costs that are lower under the other policy."""
    same: list[str]
    """The costs that are the same."""


class NodeSecondsOut(TypedDict):
    """How many seconds a node was out of service."""

    seconds_out: float
    """Under the policy."""
    against: float
    """Under the other policy."""


class DecisionDifference(TypedDict):
    """The decisions that only one of two policies makes."""

    only_here: list[ReplayedDecision]
    """Those of the policy."""
    only_there: list[ReplayedDecision]
    """Those of the other policy."""


class ReplayDifference(TypedDict):
    """How another policy fares."""

    policy: str
    """The name of the other policy."""
    totals: ReplayTotals
    """Its totals."""
    costs: dict[str, float]
    """Its costs, by name."""
    weighted_node_hours: float | None
    """Their weighted sum in node-hours; null if nothing has a weight."""
    node_hours: NodeHoursSplit
    """Its node-hours."""
    compared: ComparedCosts
    """Which costs are lower under which policy."""
    breaker_trips: list[ReplayedTrip]
    """The circuit breakers that opened under it."""
    seconds_out_more: float
    """How many more seconds nodes are out of service under the policy than under the other one."""
    nodes: dict[str, NodeSecondsOut]
    """The nodes that are out of service for another time."""
    decisions: DecisionDifference
    """The decisions that differ."""


ReplayedHistory = TypedDict(
    "ReplayedHistory",
    {
        "policy": str,
        "events": int,
        "from": float | str,
        "until": float | str,
        "cost_assumptions": CostAssumptionsAnswer,
        "assumed": dict[str, AssumedSpan],
        "unknown_faults": list[str],
        "unread_fields": list[str],
    },
)
ReplayedHistory.__doc__ = """What was replayed.

- `policy`: the name of the policy. `events`: how many events the history has. `from`: the time of the first event, in
  seconds if the history counts seconds, else in ISO 8601. `until`: the time of the last consequence.
- `cost_assumptions`: what is assumed about costs. `assumed`: how long each action and wait takes.
- `unknown_faults`: the faults that no catalogue defines. `unread_fields`: the fields of the history that nothing reads.
"""


class ReplayedPolicy(TypedDict):
    """What a policy decides, and what that costs."""

    decisions: list[ReplayedDecision]
    """The decisions, in order."""
    nodes: dict[str, float]
    """How many seconds each node was out of service."""
    totals: ReplayTotals
    """The whole fleet, in numbers."""
    costs: dict[str, float]
    """The costs, by name; the name ends with the unit."""
    weighted_node_hours: float | None
    """Their weighted sum in node-hours; null if nothing has a weight."""
    node_hours: NodeHoursSplit
    """The node-hours, by what the nodes did."""
    breaker_trips: list[ReplayedTrip]
    """The circuit breakers that opened."""


class ReplayAnswer(ReplayedHistory, ReplayedPolicy):
    """What a policy decides on a history of faults, and what that costs."""

    against: NotRequired[ReplayDifference]
    """How the policy of `--against` fares; missing without it."""
