"""A node, its parts and its rack as a check sees them: declared slots, with the readings of what sits there."""

from __future__ import annotations

from typing import Any

from assay.harness.spec import SpecView
from assay.harness.trial import Trial
from assay.harness.view import View
from assay.model.fleet import Fleet, Node
from assay.model.nodespec import NodeSpec
from assay.model.reading import as_reading
from assay.model.subject import Subject

PLACES = {
    "gpu": ("probe", "gpu", "devices"),
    "hca": ("probe", "hca"),
    "nic": ("probe", "nic"),
    "nvme": ("probe", "nvme"),
    "psu": ("bmc", "psu"),
    "fan": ("bmc", "fan"),
}


class PartView(View):
    """One declared slot: `slot` is its name in ids (`gpu3`), `declared` what belongs there, the rest is evidence."""

    def __init__(self, trial: Trial, node: Node, kind: str, slot: str, key: str, declared: Any = None) -> None:
        super().__init__(trial, node.name, (*PLACES[kind], key))
        self.slot, self.declared = slot, declared
        self.subject = Subject(node.pool, node.name, slot)

    @property
    def answers(self) -> bool:
        """Whether the part is there. Raises Silence when that could not be told."""
        above = View(self._trial, self._document, self._path[:-1])._branch()
        leaf = as_reading(above.get(self._path[-1], {"absent": ""}))
        if leaf is not None and leaf.kind in ("failed", "unsupported"):
            raise self._silent(leaf.kind, self._path, leaf.reason)
        return leaf is None

    def __repr__(self) -> str:
        return f"<{self.subject}>"


class NodeView(View):
    """A node: its probe's branches (`host`, `gpu`, `kernel_log` …), its `bmc`, its `active` results, its parts."""

    def __init__(self, trial: Trial, fleet: Fleet, node: Node) -> None:
        super().__init__(trial, node.name, ("probe",))
        self._fleet, self._node = fleet, node
        self.name, self.subject = node.name, Subject(node.pool, node.name)
        self.declared = SpecView(node, f"Node/{node.name}", "", fleet.lines)

    @property
    def bmc(self) -> View:
        """What the node's BMC says."""
        return View(self._trial, self.name, ("bmc",))

    @property
    def active(self) -> View:
        """Results of workloads that were run on the node."""
        return View(self._trial, self.name, ("active",))

    @property
    def gpus(self) -> list[PartView]:
        """The GPUs that answer."""
        return self._answering("gpu")

    @property
    def hcas(self) -> list[PartView]:
        """The InfiniBand adapters that answer."""
        return self._answering("hca")

    @property
    def nics(self) -> list[PartView]:
        """The front-end interfaces that answer."""
        return self._answering("nic")

    @property
    def drives(self) -> list[PartView]:
        """The NVMe drives that answer."""
        return self._answering("nvme")

    @property
    def psus(self) -> list[PartView]:
        """The power supplies that answer."""
        return self._answering("psu")

    @property
    def fans(self) -> list[PartView]:
        """The fans that answer."""
        return self._answering("fan")

    def part(self, kind: str, slot: str) -> PartView:
        """Return the declared slot of a kind, whether or not anything answers there."""
        spec = self._fleet.node_specs[self._node.spec]
        key, declared = slot_of(spec, kind, slot, self._fleet)
        if kind == "hca":
            declared.guid = self.declared.hca_guids[declared.rail]
        return PartView(self._trial, self._node, kind, slot, key, declared)

    def _answering(self, kind: str) -> list[PartView]:
        """Return every part of a kind that evidence holds, also those that nobody declared. Raises Silence."""
        above = View(self._trial, self.name, PLACES[kind])
        found = [key for key, tree in above._branch().items() if as_reading(tree) is None]
        return [PartView(self._trial, self._node, kind, key, key) for key in found]

    def __repr__(self) -> str:
        return f"<{self.subject}>"


class RackView:
    """A rack of one pool and the nodes that are declared in it."""

    def __init__(self, trial: Trial, fleet: Fleet, subject: Subject) -> None:
        self.subject, self.name = subject, subject.name.removeprefix("rack-")
        members = [node for node in fleet.pool(subject.scope) if node.rack == self.name]
        self.nodes = [NodeView(trial, fleet, node) for node in members]

    def __repr__(self) -> str:
        return f"<{self.subject}>"


def slots(spec: NodeSpec, kind: str) -> list[str]:
    """Return the slots of a kind that a node of this spec must have, in order."""
    counted = {"gpu": spec.gpus.count, "nvme": spec.nvme.count, "psu": spec.psus.count, "fan": spec.fans}
    if kind in counted:
        return [f"{kind}{index}" for index in range(counted[kind])]
    named: dict[str, Any] = {"hca": spec.hcas, "nic": spec.nics}
    return [part.name for part in named[kind]]


def slot_of(spec: NodeSpec, kind: str, slot: str, fleet: Fleet) -> tuple[str, Any]:
    """Return a slot's key in the evidence and what the spec declares there."""
    document = f"NodeSpec/{spec.name}"
    view = SpecView(spec, document, "", fleet.lines)
    index = slots(spec, kind).index(slot)
    if kind == "gpu":
        return spec.gpus.pci[index], view.gpus
    if kind in ("hca", "nic"):  # only the one that is asked for is made
        of = f"{kind}s"
        return slot, SpecView(getattr(spec, of)[index], document, f"{of}.{index}", fleet.lines)
    if kind == "nvme":
        return slot, view.nvme
    return str(index), view.psus if kind == "psu" else None
