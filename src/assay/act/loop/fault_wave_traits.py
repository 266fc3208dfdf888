"""What nodes of a fault wave may have in common: rack, leaf switches, spec, profile, spec commit and firmware."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from assay.act.loop.context import ControllerContext
from assay.decide.state.fleet_snapshot import NodeTrait, NodeTraits
from assay.declare.home import find_home_of
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.topology_cache import load_topology
from assay.model.errors import AssayError


class FaultWaveTraits(Mapping[str, NodeTraits]):
    """The traits of every node of the inventory, by name. Those of a node are read when they are looked up."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context

    def __getitem__(self, name: str) -> NodeTraits:
        node = self._context.fleet.nodes[name]
        found = {("rack", f"{node.site}/{node.rack}"), ("spec", node.spec), ("profile", node.profile)}
        return frozenset({*found, *self._list_leaves(name), *self._list_firmware(name), *self._list_commits(name)})

    def __iter__(self) -> Iterator[str]:
        return iter(self._context.fleet.nodes)

    def __len__(self) -> int:
        return len(self._context.fleet.nodes)

    def _list_leaves(self, name: str) -> Iterator[NodeTrait]:
        topology = self._topologies.get(self._context.fleet.nodes[name].settings.fabric or "")
        for cable in topology.cables_of_node(name) if topology else ():
            yield from (("leaf", end.device) for end in cable.ends if not end.node)

    def _list_firmware(self, name: str) -> Iterator[NodeTrait]:
        """Yield the versions that the BMC gave last; none from a damaged document, which its checks report."""
        try:
            evidence = self._context.evidence.latest(name)
        except AssayError:
            return
        tree = evidence.read("bmc", "firmware") if evidence else None
        for part in tree.value if tree and tree.kind == "value" and isinstance(tree.value, dict) else ():
            if evidence and (version := evidence.read("bmc", "firmware", part)).kind == "value":
                yield "firmware", f"{part} {version.value}"

    def _list_commits(self, name: str) -> Iterator[NodeTrait]:
        newest = max(self._context.ledger.latest(name), key=lambda one: one.at, default=None)
        if newest and (commit := self._spec_commits.get(newest.run)):
            yield "spec commit", commit[:12]

    @cached_property
    def _spec_commits(self) -> dict[str, str]:
        return {run.id: run.spec_commit for run in self._context.ledger.runs()}

    @cached_property
    def _topologies(self) -> dict[str, CompiledTopology]:
        """The topology of each design that compiles. `assay check` reports the others."""
        found: dict[str, CompiledTopology] = {}
        for name in self._context.fleet.designs:
            try:
                found[name] = load_topology(self._context.fleet.root, name, find_home_of(self._context.fleet).overlays)
            except AssayError as error:
                self._context.progress(f"fabric {name}: {error}")
        return found
