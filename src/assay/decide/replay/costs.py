"""What a policy costs in a replay, side by side: time out of service, exposure to open faults, jobs, and people.

Of the jobs nobody knows more than what the cost assumptions say of their size, so their numbers are expected ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NotRequired, get_args

from typing_extensions import TypedDict

from assay.decide.replay.exposure import JOB_SEVERITIES, Exposure, ExposureMeter, NodeCondition
from assay.model.decision import DecisionTiming
from assay.model.specs.cost_assumptions import CostAssumptions, PolicyCostName

COST_NAMES: tuple[PolicyCostName, ...] = get_args(PolicyCostName)
PolicyCosts = Mapping[PolicyCostName, float]


@dataclass(frozen=True)
class ReplayTally:
    """What is left of a replay for its costs: up to when it ran, what people had to do, and the exposure."""

    until: datetime
    work: Mapping[str, int]
    exposure: ExposureMeter


@dataclass(frozen=True)
class CostModel:
    """How costs are counted: by `assumptions`, read at `where`.

    `history_says_use`: the history says of some node that it is in use. Jobs are then only where it says so, else on
    every node that serves.
    """

    assumptions: CostAssumptions
    where: str
    history_says_use: bool

    @property
    def jobs_note(self) -> str:
        """What is assumed of the jobs, in words."""
        job = self.assumptions.jobs
        on = "where the history says that a node is in use" if self.history_says_use else "on every node that serves"
        return f"assumed: jobs of {job.nodes} nodes and {job.hours:g} h, {on}"

    def count(self, tally: ReplayTally, until: datetime) -> PolicyCosts:
        """Return the costs up to a moment, at or after the end of the replay. Of each, less is better."""
        exposure = tally.exposure.sum_up(until)
        hit = self._count_jobs_hit(exposure)
        people = self.assumptions.people
        work = tally.work
        ended = [fault for fault in exposure.ended if self._runs_jobs(fault) and fault.severity != "catastrophic"]
        hours = {"ticket": people.ticket, "dossier": people.dossier, "certification": people.certification}
        return {
            "out_node_hours": exposure.sum_hours("out"),
            "cordoned_idle_node_hours": exposure.sum_hours("cordoned_idle"),
            "catastrophic_node_hours": exposure.sum_hours("serving", severity="catastrophic"),
            "degraded_node_hours": exposure.sum_hours("serving", severity="degraded"),
            "catastrophic_jobs": hit["catastrophic"],
            "degraded_jobs": hit["degraded"],
            "catastrophic_job_nodes": hit["catastrophic"] * self.assumptions.jobs.nodes,
            "jobs_ended": float(len(ended)),
            "tickets": float(work.get("ticket", 0) + work.get("dossier", 0)),
            "person_hours": sum(each.hours * work.get(kind, 0) for kind, each in hours.items()),
        }

    def _count_jobs_hit(self, exposure: Exposure) -> dict[str, float]:
        """Return how many jobs met a fault, by its severity: that at its beginning, and one more each job's length."""
        length = timedelta(hours=self.assumptions.jobs.hours)
        hit: dict[str, float] = dict.fromkeys(JOB_SEVERITIES, 0.0)
        for span in exposure.spans:
            if self._runs_jobs(span.condition):
                starts = max(min(span.end, span.open_until) - span.begin, timedelta())
                hit[span.condition.severity] += float(span.is_first) + starts / length
        return hit

    def _runs_jobs(self, condition: NodeCondition) -> bool:
        return condition.is_used or not self.history_says_use

    def weigh(self, costs: PolicyCosts) -> float | None:
        """Return the weighted sum of the costs in node-hours, None where nothing has a weight."""
        weights = self.assumptions.weights
        return sum(costs[name] * weight.node_hours for name, weight in weights.items()) if weights else None

    def as_json(self) -> CostAssumptionsAnswer:
        """Return what is assumed, with its owner and sources, as plain JSON data."""
        known = self.assumptions
        return {
            "name": known.name,
            "owner": known.owner,
            "where": self.where,
            "jobs": {"note": self.jobs_note, **known.jobs.model_dump()},
            "people": known.people.model_dump(),
            "weights": {name: weight.model_dump() for name, weight in known.weights.items()},
        }


def format_costs_json(costs: PolicyCosts) -> dict[str, float]:
    """Return costs as JSON numbers, without a fraction where there is none."""
    rounded = {name: round(costs[name], 3) for name in COST_NAMES}
    return {name: int(cost) if cost == int(cost) else cost for name, cost in rounded.items()}


def split_node_hours(exposure: Exposure) -> NodeHoursSplit:
    """Return the node-hours of each kind, which add up to `all`.

    `cordoned_in_use` is a part of the serving ones: closed to new jobs, while the last job still ran.
    """
    return {
        "serving_without_fault": round(exposure.sum_hours("serving", severity=""), 3),
        "serving_with_informational_fault": round(exposure.sum_hours("serving", severity="informational"), 3),
        "serving_with_degraded_fault": round(exposure.sum_hours("serving", severity="degraded"), 3),
        "serving_with_catastrophic_fault": round(exposure.sum_hours("serving", severity="catastrophic"), 3),
        "cordoned_idle": round(exposure.sum_hours("cordoned_idle"), 3),
        "out": round(exposure.sum_hours("out"), 3),
        "not_yet_in_service": round(exposure.sum_hours("not_yet"), 3),
        "all": round(exposure.sum_hours(), 3),
        "cordoned_in_use": round(exposure.sum_hours("serving", cordoned=True), 3),
    }


def compare_costs(these: Mapping[str, float], others: Mapping[str, float]) -> ComparedCosts:
    """Return the names of the costs that are lower here, lower there, and the same."""
    compared: ComparedCosts = {"lower_here": [], "lower_there": [], "same": []}
    for name in COST_NAMES:
        if these[name] == others[name]:
            compared["same"].append(name)
        else:
            compared["lower_here" if these[name] < others[name] else "lower_there"].append(name)
    return compared


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
