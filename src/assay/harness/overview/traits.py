"""What a subject shares with others: its place, what it is made of, and by which specs it was judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from assay.fabric.design import plan
from assay.harness.overview.clusters import Group
from assay.model.errors import Trouble
from assay.model.fleet import Fleet, Node

BATCH_DIGITS = 14
"""An adapter's GUID without its last four digits, `0x` counted: those that came out of one box share it."""


class Traits:
    """The groups of subjects, looked up once each; those that people would rather hear of come first.

    Switches are told of the fabrics of `broken` nodes only, as no other switch can explain anything.
    """

    def __init__(self, fleet: Fleet, broken: Iterable[str]) -> None:
        self._fleet = fleet
        nodes = (fleet.nodes[name] for name in broken if name in fleet.nodes)
        self._fabrics = {str(node.variables.get("fabric", "")) for node in nodes} & {*fleet.designs}
        self._of: dict[str, tuple[Group, ...]] = {}
        self._nodes: dict[str, tuple[Group, ...]] = {}
        self._leaves: dict[str, Mapping[tuple[str, str], str]] = {}

    def of(self, subject: str, holder: str) -> tuple[Group, ...]:
        """Return the groups of a subject of a holder (a node, or else a rack or fabric)."""
        if subject not in self._of:
            self._of[subject] = self._groups(subject, self._fleet.nodes.get(holder))
        return self._of[subject]

    def _groups(self, subject: str, node: Node | None) -> tuple[Group, ...]:
        part = subject.split("/", 2)[2] if subject.count("/") > 1 else ""
        if node is None:
            scope, name = subject.split("/")[:2]
            return (("fabric", name),) if scope == "fabric" else (("rack", name.removeprefix("rack-")), ("pool", scope))
        if node.name not in self._nodes:
            self._nodes[node.name] = tuple(self._shared(node))
        if not part:
            return self._nodes[node.name]
        leaf = self._leaf(node, part)
        own: list[Group] = [("node", node.name), *([("leaf", leaf)] if leaf else [])]
        return (*own, *self._nodes[node.name], ("slot", part))

    def _shared(self, node: Node) -> list[Group]:
        """Return what a node and its parts share with others."""
        spec = self._fleet.node_specs.get(node.spec)
        found = [("rack", node.rack), ("pool", node.pool)]
        found += [("firmware", spec.firmware)] if spec else []
        found += [("adapters", node.hca_guids[0][:BATCH_DIGITS])] if node.hca_guids else []
        found += [("spec", node.spec), ("profile", node.profile)]
        return [*found, ("site", node.site)] if self._sites > 1 else found

    @cached_property
    def _sites(self) -> int:
        return len({node.site for node in self._fleet.nodes.values()})

    def _leaf(self, node: Node, part: str) -> str:
        name = str(node.variables.get("fabric", ""))
        spec = self._fleet.node_specs.get(node.spec)
        if name not in self._fabrics or spec is None or all(part != hca.name for hca in spec.hcas):
            return ""
        if name not in self._leaves:
            self._leaves[name] = self._cabled(name)
        return self._leaves[name].get((node.name, part), "")

    def _cabled(self, design: str) -> Mapping[tuple[str, str], str]:
        """Return the switch that each adapter of a fabric hangs on; nothing where the design cannot be compiled."""
        try:
            cables = plan(self._fleet.designs[design], self._fleet).cables
        except Trouble:
            return {}
        return {
            (one.node, one.device.rpartition(" ")[2]): other.device
            for cable in cables
            for one, other in (cable.ends, cable.ends[::-1])
            if one.node and not other.node
        }
