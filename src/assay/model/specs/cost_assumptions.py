"""CostAssumptions: what a replay cannot know about jobs and people, and the weights of costs, with their sources."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from assay.model.specs.spec_document import SpecDocument, StrictModel

PolicyCostName = Literal[
    "out_node_hours",
    "cordoned_idle_node_hours",
    "catastrophic_node_hours",
    "degraded_node_hours",
    "catastrophic_jobs",
    "degraded_jobs",
    "catastrophic_job_nodes",
    "jobs_ended",
    "tickets",
    "person_hours",
]
"""What a policy costs, by name. Of each, less is better."""


class AssumedJob(StrictModel):
    """The job that is assumed on every node whose jobs are not known: its size in `nodes`, its length in `hours`."""

    nodes: int = Field(ge=1)
    hours: float = Field(gt=0)
    source: str = Field(min_length=1)


class SourcedHours(StrictModel):
    """Hours of a person, and where the number comes from.

    `hours`: the time.
    """

    hours: float = Field(ge=0)
    source: str = Field(min_length=1)


class PersonHours(StrictModel):
    """What one ticket, one dossier (a node that goes back to its vendor) and one certification cost people.

    `ticket`, `dossier`, `certification`: the hours that one of them takes.
    """

    ticket: SourcedHours
    dossier: SourcedHours
    certification: SourcedHours


class CostWeight(StrictModel):
    """How many node-hours one unit of a cost counts for.

    `node_hours`: what one unit of the cost counts for.
    """

    node_hours: float = Field(ge=0)
    source: str = Field(min_length=1)


class CostAssumptions(SpecDocument):
    """What `assay replay` assumes about jobs and people, and the weights of its costs.

    `weights` sum the costs into one number of node-hours, which only ranks. Costs without a weight are not in it.

    `jobs`: the job that is assumed. `people`: what people's work takes.
    """

    kind: Literal["CostAssumptions"]
    owner: str = Field(min_length=1)
    sources: list[str] = Field(min_length=1)
    jobs: AssumedJob
    people: PersonHours
    weights: dict[PolicyCostName, CostWeight] = Field(default={})
