"""How many nodes stand with their schedulers: one question to each scheduler."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection

from assay.actions.workloads import Standing, Workloads
from assay.model.errors import Trouble
from assay.model.fleet import Node


def standings_of(
    nodes: Collection[Node], workloads: Callable[[Node], Workloads], tell: Callable[[str], None]
) -> dict[str, Standing]:
    """Return how these nodes stand; those of which a scheduler cannot tell are left out, and `tell` is told why."""
    asked: dict[Workloads, list[str]] = defaultdict(list)
    for node in nodes:
        asked[workloads(node)].append(node.name)
    found: dict[str, Standing] = {}
    for scheduler, names in asked.items():
        try:
            found |= scheduler.standings(names)
        except Trouble as trouble:
            tell(f"cannot tell what {len(names)} nodes are used for: {trouble}")
    return found
