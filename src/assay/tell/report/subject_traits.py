"""What a subject shares with others: its place, its parts, and the specs that it was judged by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from assay.fabric.design.design_compiler import compile_topology
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.outcome import read_part, read_whole
from assay.tell.report.cluster_statistics import TraitGroup

GUID_BATCH_DIGITS = 14
"""Length of an adapter's GUID without the last four digits: adapters of one production batch share that prefix."""


class SubjectTraits:
    """The groups of subjects, computed once each, in order of preference.

    Switches are groups only in the fabrics of `broken` nodes, since no other switch can explain anything.
    """

    def __init__(self, fleet: Fleet, broken: Iterable[str]) -> None:
        self._fleet = fleet
        nodes = (fleet.nodes[name] for name in broken if name in fleet.nodes)
        self._fabrics = {node.settings.fabric or "" for node in nodes} & {*fleet.designs}
        self._of: dict[str, tuple[TraitGroup, ...]] = {}
        self._nodes: dict[str, tuple[TraitGroup, ...]] = {}
        self._leaves: dict[str, Mapping[tuple[str, str], str]] = {}

    def of(self, subject: str, holder: str) -> tuple[TraitGroup, ...]:
        """Return the groups of a subject. `holder` is its node, rack or fabric."""
        if subject not in self._of:
            self._of[subject] = self._groups(subject, self._fleet.nodes.get(holder))
        return self._of[subject]

    def _groups(self, subject: str, node: Node | None) -> tuple[TraitGroup, ...]:
        part = read_part(subject)
        if node is None:
            scope, name = read_whole(subject).split("/")
            return (("fabric", name),) if scope == "fabric" else (("rack", name.removeprefix("rack-")), ("pool", scope))
        if node.name not in self._nodes:
            self._nodes[node.name] = tuple(self._node_groups(node))
        if not part:
            return self._nodes[node.name]
        leaf = self._leaf(node, part)
        own: list[TraitGroup] = [("node", node.name), *([("leaf", leaf)] if leaf else [])]
        return (*own, *self._nodes[node.name], ("slot", part))

    def _node_groups(self, node: Node) -> list[TraitGroup]:
        """Return the groups of a node, which its parts belong to as well."""
        spec = self._fleet.node_specs.get(node.spec)
        groups = [("rack", node.rack), ("pool", node.pool)]
        groups += [("firmware", spec.firmware)] if spec else []
        groups += [("adapters", node.hca_guids[0][:GUID_BATCH_DIGITS])] if node.hca_guids else []
        groups += [("spec", node.spec), ("profile", node.profile)]
        return [*groups, ("site", node.site)] if self._sites > 1 else groups

    @cached_property
    def _sites(self) -> int:
        return len({node.site for node in self._fleet.nodes.values()})

    def _leaf(self, node: Node, part: str) -> str:
        name = node.settings.fabric or ""
        spec = self._fleet.node_specs.get(node.spec)
        if name not in self._fabrics or spec is None or all(part != hca.name for hca in spec.hcas):
            return ""
        if name not in self._leaves:
            self._leaves[name] = self._find_leaves(name)
        return self._leaves[name].get((node.name, part), "")

    def _find_leaves(self, design: str) -> Mapping[tuple[str, str], str]:
        """Return the leaf switch of each node and adapter of a fabric; none where the design cannot be compiled."""
        try:
            cables = compile_topology(self._fleet.designs[design], self._fleet).cables
        except AssayError:
            return {}
        return {
            (end.node, end.device.rpartition(" ")[2]): far_end.device
            for cable in cables
            for end, far_end in (cable.ends, cable.ends[::-1])
            if end.node and not far_end.node
        }
