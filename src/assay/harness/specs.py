"""What a fleet declares, as the views that checks get of it: made once, for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from assay.harness.spec import Limits, SpecView, line_of
from assay.harness.told import told
from assay.model.fleet import Fleet, Node

if TYPE_CHECKING:  # they are read with the specs that a fleet has
    from assay.model.design import FabricDesign
    from assay.model.firmware import FirmwareBundle
    from assay.model.nodespec import NodeSpec
    from assay.model.profile import ManagementProfile


class AdapterView(SpecView):
    """An InfiniBand adapter as the spec declares it, with the GUID that the inventory gives to this node's."""

    __slots__ = ("guid",)

    def __init__(self, of_all: SpecView, guid: Any) -> None:
        super().__init__(of_all._spec, of_all._document, of_all._path, of_all._lines)
        self._seen, self.guid = of_all._seen, guid


class Specs:
    """The declarations of one fleet."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self._views: dict[str, SpecView] = {}
        self._limits: dict[str, Limits] = {}
        self._slots: dict[tuple[str, str, str], tuple[str, Any]] = {}

    def view(self, of: NodeSpec | FirmwareBundle | ManagementProfile) -> SpecView:
        """Return the view of a whole spec."""
        name = f"{of.kind}/{of.name}"
        if name not in self._views:
            self._views[name] = SpecView(of, name, "", self.fleet.lines)
        return self._views[name]

    def limits(self, of: NodeSpec | FabricDesign) -> Limits:
        """Return the thresholds that a spec or a design sets."""
        name = f"{of.kind}/{of.name}"
        if name not in self._limits:
            self._limits[name] = Limits(of, self.fleet.lines)
        return self._limits[name]

    def node(self, node: Node) -> SpecView:
        """Return what the inventory says of a node."""
        return SpecView(node, f"Node/{node.name}", "", self.fleet.lines)

    def slot(self, node: Node, kind: str, slot: str) -> tuple[str, Any]:
        """Return the key of a node's slot in the evidence, and what is declared there."""
        key, declared = self._slot(self.fleet.node_specs[node.spec], kind, slot)
        return key, self._adapter(node, declared) if kind == "hca" else declared

    def rack(self, pool: str, name: str) -> list[Node]:
        """Return the nodes that are declared in a rack of a pool."""
        return self._racks.get((pool, name), [])

    @cached_property
    def _racks(self) -> Mapping[tuple[str, str], list[Node]]:
        racks: dict[tuple[str, str], list[Node]] = {}
        for node in self.fleet.nodes.values():
            racks.setdefault((node.pool, node.rack), []).append(node)
        return racks

    def _adapter(self, node: Node, declared: SpecView) -> AdapterView:
        rail = declared.rail
        source = line_of(self.fleet.lines, f"Node/{node.name}", f"hca_guids.{rail}")
        return AdapterView(declared, told(node.hca_guids[rail], source=source))

    def _slot(self, spec: NodeSpec, kind: str, slot: str) -> tuple[str, Any]:
        found = self._slots.get((spec.name, kind, slot))
        if found is None:
            found = self._slots[spec.name, kind, slot] = self._found(spec, kind, slot)
        return found

    def _found(self, spec: NodeSpec, kind: str, slot: str) -> tuple[str, Any]:
        view, index = self.view(spec), slots(spec, kind).index(slot)
        if kind == "gpu":
            return spec.gpus.pci[index], view.gpus
        if kind in ("hca", "nic"):
            return slot, (view.hcas if kind == "hca" else view.nics)[index]
        if kind == "nvme":
            return slot, view.nvme
        return str(index), view.psus if kind == "psu" else None


def slots(spec: NodeSpec, kind: str) -> list[str]:
    """Return the slots of a kind that a node of this spec must have, in order."""
    counted = {"gpu": spec.gpus.count, "nvme": spec.nvme.count, "psu": spec.psus.count, "fan": spec.fans}
    if kind in counted:
        return [f"{kind}{index}" for index in range(counted[kind])]
    named: dict[str, Any] = {"hca": spec.hcas, "nic": spec.nics}
    return [part.name for part in named[kind]]
