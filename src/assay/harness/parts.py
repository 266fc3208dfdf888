"""A node, its parts and its rack as a check sees them: declared slots, with the readings of what sits there."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from assay.harness.spec import SpecView
from assay.harness.specs import Specs
from assay.harness.trial import Trial
from assay.harness.view import View
from assay.model.fleet import Node
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
        self.slot, self.declared, self._node = slot, declared, node

    @cached_property
    def subject(self) -> Subject:
        """Which part of which node this is."""
        return Subject(self._node.pool, self._node.name, self.slot)

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

    def __init__(self, trial: Trial, specs: Specs, node: Node) -> None:
        super().__init__(trial, node.name, ("probe",))
        self._specs, self._node, self.name = specs, node, node.name

    @cached_property
    def subject(self) -> Subject:
        """Which node this is."""
        return Subject(self._node.pool, self.name)

    @cached_property
    def declared(self) -> SpecView:
        """What the inventory says of the node."""
        return self._specs.node(self._node)

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
        key, declared = self._specs.slot(self._node, kind, slot)
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

    def __init__(self, trial: Trial, specs: Specs, subject: Subject) -> None:
        self.subject, self.name = subject, subject.name.removeprefix("rack-")
        self.nodes = [NodeView(trial, specs, node) for node in specs.rack(subject.scope, self.name)]

    def __repr__(self) -> str:
        return f"<{self.subject}>"
