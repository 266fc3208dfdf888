"""What could be the common cause of a wave, node by node: place, leaves, spec, commit and firmware. Read when asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from assay.controller.context import ControllerContext
from assay.fabric.topology.compiled_topology import CompiledTopology
from assay.fabric.topology.topology_cache import load_topology
from assay.lifecycle.decisions.common_cause import NodeTrait, NodeTraits
from assay.model.errors import AssayError


class FaultWaveTraits(Mapping[str, NodeTraits]):
    """The traits of every node of the inventory, by name. Nothing is read before somebody asks about a node."""

    def __init__(self, desk: ControllerContext) -> None:
        self._desk = desk

    def __getitem__(self, name: str) -> NodeTraits:
        node = self._desk.fleet.nodes[name]
        found = {("rack", f"{node.site}/{node.rack}"), ("spec", node.spec), ("profile", node.profile)}
        return frozenset({*found, *self._leaves(name), *self._firmware(name), *self._commits(name)})

    def __iter__(self) -> Iterator[str]:
        return iter(self._desk.fleet.nodes)

    def __len__(self) -> int:
        return len(self._desk.fleet.nodes)

    def _leaves(self, name: str) -> Iterator[NodeTrait]:
        plan = self._topologies.get(str(self._desk.fleet.nodes[name].variables.get("fabric") or ""))
        for cable in plan.cables_of_node(name) if plan else ():
            yield from (("leaf", end.device) for end in cable.ends if not end.node)

    def _firmware(self, name: str) -> Iterator[NodeTrait]:
        """Yield what its BMC told last; a damaged document tells nothing here, and is told of where it is judged."""
        try:
            evidence = self._desk.evidence.latest(name)
        except AssayError:
            return
        tree = evidence.read("bmc", "firmware") if evidence else None
        for part in tree.value if tree and tree.kind == "value" and isinstance(tree.value, dict) else ():
            if evidence and (version := evidence.read("bmc", "firmware", part)).kind == "value":
                yield "firmware", f"{part} {version.value}"

    def _commits(self, name: str) -> Iterator[NodeTrait]:
        judged = max(self._desk.ledger.latest(name), key=lambda one: one.at, default=None)
        if judged and (commit := self._commit_of.get(judged.run)):
            yield "spec commit", commit[:12]

    @cached_property
    def _commit_of(self) -> dict[str, str]:
        return {run.id: run.spec_commit for run in self._desk.ledger.runs()}

    @cached_property
    def _topologies(self) -> dict[str, CompiledTopology]:
        """Return each design that compiles; one that does not is `assay check`'s to tell of."""
        found: dict[str, CompiledTopology] = {}
        for name in self._desk.fleet.designs:
            try:
                found[name] = load_topology(self._desk.fleet.root, name)
            except AssayError as trouble:
                self._desk.progress(f"fabric {name}: {trouble}")
        return found
