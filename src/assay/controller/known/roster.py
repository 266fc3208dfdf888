"""The enrolled nodes of an inventory, in its order, and how many stand in each place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from assay.lifecycle.situation import Place
from assay.model.fleet import Node


class Roster:
    """Made once for a reading of the inventory; some of its nodes are found without going through all."""

    def __init__(self, nodes: Mapping[str, Node], enrolled: Collection[str]) -> None:
        self.nodes = {name: node for name, node in nodes.items() if name in enrolled}
        self._turn = {name: turn for turn, name in enumerate(self.nodes)}
        self._places = Counter(map(_place, self.nodes.values()))

    def some(self, names: Iterable[str]) -> list[Node]:
        """Return those of these nodes that are here, in the inventory's order."""
        here = {name for name in names if name in self.nodes}
        return [self.nodes[name] for name in sorted(here, key=self._turn.__getitem__)]

    def without(self, nodes: Iterable[Node]) -> Counter[Place]:
        """Return how many others stand in each place."""
        left = self._places.copy()
        for place, count in Counter(map(_place, nodes)).items():
            left[place] -= count
            if not left[place]:
                del left[place]
        return left


def _place(node: Node) -> Place:
    return (node.pool, node.site, node.rack)
