"""What a policy costs in a replay, side by side: time out of service, exposure to open faults, jobs, and people.

Of the jobs nobody knows more than what the cost assumptions say of their size, so their numbers are expected ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import get_args

from assay.decide.replay.exposure import JOB_SEVERITIES, Exposure, NodeCondition
from assay.model.specs.cost_assumptions import CostAssumptions, PolicyCostName

COST_NAMES: tuple[PolicyCostName, ...] = get_args(PolicyCostName)
PolicyCosts = Mapping[PolicyCostName, float]


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

    def count(self, exposure: Exposure, work: Mapping[str, int]) -> PolicyCosts:
        """Return the costs of an exposure, and of the work that people had. Of each, less is better."""
        hit = self._count_jobs_hit(exposure)
        people = self.assumptions.people
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


def round_costs(costs: PolicyCosts) -> dict[str, float]:
    """Return costs as JSON has them, without a fraction where there is none."""
    rounded = {name: round(costs[name], 3) for name in COST_NAMES}
    return {name: int(cost) if cost == int(cost) else cost for name, cost in rounded.items()}
