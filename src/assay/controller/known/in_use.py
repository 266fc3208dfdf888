"""How nodes stand with their schedulers: one question to each scheduler, however many nodes it has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection

from assay.actions.workloads import Standing, Workloads
from assay.controller.effects.effect import words
from assay.model.fleet import Node


def standings_of(
    nodes: Collection[Node], workloads: Callable[[Node], Workloads], tell: Callable[[str], None]
) -> dict[str, Standing]:
    """Return how these nodes stand; those of which their scheduler cannot tell are left out, and `tell` is told why."""
    standings: dict[str, Standing] = {}
    for scheduler, names in _by_scheduler(nodes, workloads, tell).items():
        try:
            standings |= scheduler.standings(names)
        except Exception as error:  # whatever it is, the nodes of other schedulers go on
            more = f" and {len(names) - 1} more" if names[1:] else ""
            tell(f"{names[0]}{more}: cannot tell what is in use: {words(error)}")
    return standings


def _by_scheduler(
    nodes: Collection[Node], workloads: Callable[[Node], Workloads], tell: Callable[[str], None]
) -> dict[Workloads, list[str]]:
    asked: dict[Workloads, list[str]] = defaultdict(list)
    for node in nodes:
        try:
            asked[workloads(node)].append(node.name)
        except Exception as error:  # as above
            tell(f"{node.name}: cannot tell whether it is in use: {words(error)}")
    return asked


def jobs_of(standing: Standing | None) -> tuple[str, ...] | None:
    """Return the customers' jobs by name, None where the scheduler could not tell."""
    return tuple(map(str, standing.jobs)) if standing else None


def cordon_of(standing: Standing | None) -> str | None:
    """Return what keeps jobs from a node until somebody lifts it, "" where nothing does.

    None where the scheduler could not tell, and where nothing places jobs anyway.
    """
    if standing is None or not standing.places:
        return None
    return standing.cordon if standing.closed else ""
