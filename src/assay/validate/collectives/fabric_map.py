"""Which parts of the fabric a pair of nodes uses: the nodes, their adapters, and the uplinks of their leaves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

PartKind = Literal["node", "adapter", "nvlink", "uplink"]
KIND_ORDER: Mapping[PartKind, int] = {"node": 0, "adapter": 1, "nvlink": 2, "uplink": 3}
"""Of two parts that explain equally much, the first is taken first."""


class FabricPart(NamedTuple):
    """A part that a pair uses. `name` is the node, `n0001 rail 3`, the NVLink domain, or the uplink's port."""

    kind: PartKind
    name: str


class FabricNode(NamedTuple):
    """A node with its leaf on each rail, and its place on that leaf. `domain` is its NVLink domain, "" for none."""

    name: str
    leaves: tuple[str, ...] = ()
    places: tuple[int, ...] = ()
    domain: str = ""


@dataclass(frozen=True)
class FabricMap:
    """The nodes of one fabric, the uplinks of each leaf in port order, and the uplink of each destination.

    `routes` maps (leaf, node, rail) to an uplink, as the subnet manager's tables do. Where it is empty, the design
    decides: the destination's place on its leaf chooses the uplink, as routing by destination does in a full fat tree.
    """

    nodes: Mapping[str, FabricNode]
    uplinks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    routes: Mapping[tuple[str, str, int], str] = field(default_factory=dict)

    @classmethod
    def without_design(cls, names: Iterable[str]) -> FabricMap:
        """Return a map that knows the nodes only: as if all were under one leaf."""
        return cls({name: FabricNode(name) for name in names})

    @cached_property
    def rails(self) -> int:
        """The most adapters of a node."""
        return max((len(node.leaves) for node in self.nodes.values()), default=0)

    @cached_property
    def units(self) -> Mapping[str, Sequence[str]]:
        """Node names by unit: nodes of a unit have the same leaf on every rail."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for name, unit in self._unit_names.items():
            found[unit].append(name)
        return found

    def unit_of(self, name: str) -> str:
        """Return the unit of a node."""
        return self._unit_names[name]

    @cached_property
    def _unit_names(self) -> Mapping[str, str]:
        return {name: self._name_unit(node.leaves) for name, node in self.nodes.items()}

    def share_domain(self, a: str, b: str) -> bool:
        """Whether two nodes reach each other over NVLink, without the fabric."""
        return bool(self.nodes[a].domain) and self.nodes[a].domain == self.nodes[b].domain

    def find_uplink(self, leaf: str, destination: str, rail: int) -> str:
        """Return the uplink of a leaf towards a node's adapter, "" if it is not known."""
        if self.routes:
            return self.routes.get((leaf, destination, rail), "")
        uplinks = self.uplinks.get(leaf, ())
        return uplinks[self.nodes[destination].places[rail] % len(uplinks)] if uplinks else ""

    def list_uplinks_between(self, a: str, b: str, rail: int) -> list[FabricPart]:
        """Return the uplinks that two nodes use on a rail, one in each direction; none under one leaf."""
        one, other = self.nodes[a], self.nodes[b]
        if rail >= min(len(one.leaves), len(other.leaves)) or one.leaves[rail] == other.leaves[rail]:
            return []
        ways = ((one.leaves[rail], b), (other.leaves[rail], a))
        found = (self.find_uplink(leaf, destination, rail) for leaf, destination in ways)
        return [FabricPart("uplink", uplink) for uplink in found if uplink]

    def list_node_parts(self, a: str, b: str) -> tuple[FabricPart, ...]:
        """Return the parts that all rails of a pair share."""
        nodes = (FabricPart("node", a), FabricPart("node", b))
        return (*nodes, FabricPart("nvlink", self.nodes[a].domain)) if self.share_domain(a, b) else nodes

    def list_rail_parts(self, a: str, b: str, rail: int) -> tuple[FabricPart, ...]:
        """Return the parts of one rail of a pair: both adapters, and the uplinks between them."""
        if self.share_domain(a, b):
            return ()
        adapters = (FabricPart("adapter", format_adapter(name, rail)) for name in (a, b))
        return (*adapters, *self.list_uplinks_between(a, b, rail))

    def list_pair_parts(self, a: str, b: str) -> tuple[FabricPart, ...]:
        """Return the parts of a pair that is measured as a whole: its nodes, and the uplinks of every rail."""
        shared = self.list_node_parts(a, b)
        if self.share_domain(a, b):
            return shared
        return (*shared, *(part for rail in range(self.rails) for part in self.list_uplinks_between(a, b, rail)))

    @staticmethod
    def _name_unit(leaves: tuple[str, ...]) -> str:
        return ", ".join(dict.fromkeys(leaves))


def format_adapter(node: str, rail: int) -> str:
    """Return the name of a node's adapter."""
    return f"{node} rail {rail}"


def find_node(part: FabricPart) -> str:
    """Return the node of a part that is a node or an adapter."""
    return part.name.rpartition(" rail ")[0] if part.kind == "adapter" else part.name
