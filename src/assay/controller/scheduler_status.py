"""How nodes stand with their schedulers: one question to each scheduler, however many nodes it has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection

from assay.controller.effects.effect_steps import describe_effect_error
from assay.model.fleet import Node
from assay.schedulers.scheduler_adapter import SchedulerAdapter, SchedulerNodeStatus


def read_scheduler_statuses(
    nodes: Collection[Node], workloads: Callable[[Node], SchedulerAdapter], tell: Callable[[str], None]
) -> dict[str, SchedulerNodeStatus]:
    """Return how these nodes stand; those of which their scheduler cannot tell are left out, and `tell` is told why."""
    standings: dict[str, SchedulerNodeStatus] = {}
    for scheduler, names in _group_by_scheduler(nodes, workloads, tell).items():
        try:
            standings |= scheduler.read_statuses(names)
        except Exception as error:  # whatever it is, the nodes of other schedulers go on
            more = f" and {len(names) - 1} more" if names[1:] else ""
            tell(f"{names[0]}{more}: cannot tell what is in use: {describe_effect_error(error)}")
    return standings


def _group_by_scheduler(
    nodes: Collection[Node], workloads: Callable[[Node], SchedulerAdapter], tell: Callable[[str], None]
) -> dict[SchedulerAdapter, list[str]]:
    asked: dict[SchedulerAdapter, list[str]] = defaultdict(list)
    for node in nodes:
        try:
            asked[workloads(node)].append(node.name)
        except Exception as error:  # as above
            tell(f"{node.name}: cannot tell whether it is in use: {describe_effect_error(error)}")
    return asked


def list_job_names(standing: SchedulerNodeStatus | None) -> tuple[str, ...] | None:
    """Return the customers' jobs by name, None where the scheduler could not tell."""
    return tuple(map(str, standing.jobs)) if standing else None


def describe_cordon(standing: SchedulerNodeStatus | None) -> str | None:
    """Return what keeps jobs from a node until somebody lifts it, "" where nothing does.

    None where the scheduler could not tell, and where nothing places jobs anyway.
    """
    if standing is None or not standing.places_jobs:
        return None
    return standing.cordon if standing.is_closed else ""
