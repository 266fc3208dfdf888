"""Who is asked first: in each pool the node whose evidence is oldest, and of every pool one in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain, zip_longest

from assay.model.fleet import Node


def by_overdue(nodes: Iterable[Node], seen_at: Callable[[str], float]) -> list[Node]:
    """Return the nodes in the order to ask them. `seen_at` gives a time that grows, 0 for one never seen.

    So a small pool does not wait for a large one, and in no pool does anyone wait who has waited longest.
    """
    pools: dict[str, list[Node]] = {}
    for node in sorted(nodes, key=lambda node: seen_at(node.name)):
        pools.setdefault(node.pool, []).append(node)
    return [node for node in chain.from_iterable(zip_longest(*pools.values())) if node is not None]
