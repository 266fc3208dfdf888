"""What a policy costs in a replay, side by side: time out of service, exposure to open faults, jobs, and people.

Of the jobs nobody knows more than what the cost assumptions say of their size, so their numbers are expected ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, get_args

from assay.decide.replay.exposure import JOB_SEVERITIES, Exposure, ExposureMeter, NodeCondition
from assay.model.specs.cost_assumptions import CostAssumptions, PolicyCostName

if TYPE_CHECKING:
    from assay.decide.replay.replay_answers import ComparedCosts, CostAssumptionsAnswer, NodeHoursSplit

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
        hit, people, work = self._count_jobs_hit(exposure), self.assumptions.people, tally.work
        ended = [one for one in exposure.ended if self._runs_jobs(one) and one.severity != "catastrophic"]
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
