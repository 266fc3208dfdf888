"""What a policy costs in a replay, side by side: time out of service, exposure to open faults, jobs, and people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, get_args

from assay.model.specs.cost_assumptions import CostAssumptions, PolicyCostName
from assay.trends.replay.exposure import Exposure, ExposureMeter
from assay.trends.replay.jobs_hit import AssumedJobLoad, JobLoad

if TYPE_CHECKING:
    from assay.trends.shapes.replay_answers import ComparedCosts, CostAssumptionsAnswer, NodeHoursSplit

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
    """How costs are counted: `assumptions`, read at `where`, and the jobs, described in `jobs_note`."""

    assumptions: CostAssumptions
    jobs: JobLoad
    jobs_note: str
    where: str = ""

    def count(self, tally: ReplayTally, until: datetime) -> PolicyCosts:
        """Return the costs up to a moment, at or after the end of the replay. Of each, less is better."""
        exposure = tally.exposure.sum_up(until)
        jobs, people, work = self.jobs.count(exposure), self.assumptions.people, tally.work
        hours = {"ticket": people.ticket, "dossier": people.dossier, "certification": people.certification}
        return {
            "out_node_hours": exposure.sum_hours("out"),
            "cordoned_idle_node_hours": exposure.sum_hours("cordoned_idle"),
            "catastrophic_node_hours": exposure.sum_hours("serving", severity="catastrophic"),
            "degraded_node_hours": exposure.sum_hours("serving", severity="degraded"),
            "catastrophic_jobs": jobs.hit["catastrophic"],
            "degraded_jobs": jobs.hit["degraded"],
            "catastrophic_job_nodes": jobs.catastrophic_nodes,
            "jobs_ended": jobs.ended,
            "tickets": float(work.get("ticket", 0) + work.get("dossier", 0)),
            "person_hours": sum(each.hours * work.get(kind, 0) for kind, each in hours.items()),
        }

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
            "jobs": {"note": self.jobs_note, **({} if self.jobs.says_use else known.jobs.model_dump())},
            "people": known.people.model_dump(),
            "weights": {name: weight.model_dump() for name, weight in known.weights.items()},
        }


def assume_jobs(assumptions: CostAssumptions, where: str, history_says_use: bool) -> CostModel:
    """Return the costs with jobs of the assumed size, on the nodes of which the history says that they are in use.

    They are on every node if the history says so of none.
    """
    job = assumptions.jobs
    on = "where the history says that a node is in use" if history_says_use else "on every node that serves"
    note = f"assumed: jobs of {job.nodes} nodes and {job.hours:g} h, {on}"
    return CostModel(assumptions, AssumedJobLoad(job, history_says_use), note, where)


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
