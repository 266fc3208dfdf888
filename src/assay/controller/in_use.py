"""Which jobs of customers are on which nodes: one question to each scheduler, however many nodes it has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection

from assay.actions.workloads import Standing, Workloads
from assay.model.errors import Trouble
from assay.model.fleet import Node

Jobs = dict[str, tuple[str, ...] | None]


def jobs_on(
    nodes: Collection[Node], workloads: Callable[[Node], Workloads], tell: Callable[[str], None] = lambda _: None
) -> Jobs:
    """Return the customers' jobs on each node by name, None where its scheduler cannot tell; `tell` is told why."""
    jobs: Jobs = {node.name: None for node in nodes}
    found = standings_of(nodes, workloads, tell)
    return jobs | {name: tuple(map(str, one.jobs)) for name, one in found.items()}


def standings_of(
    nodes: Collection[Node], workloads: Callable[[Node], Workloads], tell: Callable[[str], None]
) -> dict[str, Standing]:
    """Return how these nodes stand; those of which their scheduler cannot tell are left out, and `tell` is told why."""
    standings: dict[str, Standing] = {}
    for scheduler, names in _by_scheduler(nodes, workloads, tell).items():
        try:
            standings |= scheduler.standings(names)
        except Trouble as trouble:
            more = f" and {len(names) - 1} more" if names[1:] else ""
            tell(f"{names[0]}{more}: cannot tell what is in use: {trouble}")
    return standings


def _by_scheduler(
    nodes: Collection[Node], workloads: Callable[[Node], Workloads], tell: Callable[[str], None]
) -> dict[Workloads, list[str]]:
    asked: dict[Workloads, list[str]] = defaultdict(list)
    for node in nodes:
        try:
            asked[workloads(node)].append(node.name)
        except Trouble as trouble:
            tell(f"{node.name}: cannot tell whether it is in use: {trouble}")
    return asked
