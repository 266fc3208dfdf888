"""FabricDesign: the cabling of an InfiniBand fabric, as the few rules that it follows.

A rail-optimised fat tree of two tiers. Nodes are taken in order and fill scalable units as large as a leaf has
`down` ports. Unit `s` has one leaf per rail; node `n` of the unit is on port `down[n]` of each, so that rail `r`
of every node meets on leaf `r`. Leaf `l` (units first, then rails) has `per_pair` cables to every spine `s`:
leaf port `up[s × per_pair + k]` to spine port `l × per_pair + k + 1`. What follows no rule is listed in `cables`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from assay.model.design_sense import MOST_NODES, misfits, no_ports
from assay.model.errors import Contradiction
from assay.model.explicit import ExplicitCable, Guid, LinkRate
from assay.model.labels import Labels
from assay.model.nodespec import Limit
from assay.model.spec import Spec, Strict


def span(text: str) -> range:
    """Return the numbers of `first..last`, both included."""
    first, last = text.split("..")
    return range(int(first), int(last) + 1)


def _checked(ports: str) -> str:
    if not span(ports) or span(ports)[0] < 1:
        raise no_ports(ports)
    return ports


Ports = Annotated[str, Field(pattern=r"^\d{1,5}\.\.\d{1,5}$"), AfterValidator(_checked)]
LeafName = Annotated[str, Field(pattern=r"^([^{}]|\{(unit|rail)(:0?\d)?\})+$")]
SpineName = Annotated[str, Field(pattern=r"^([^{}]|\{index(:0?\d)?\})+$")]
HcaLabel = Annotated[str, Field(pattern=r"^([^{}]|\{rail(:0?\d)?\})*$")]
LabelRule = Literal["number", "cage/port"]
Tier = Literal["leaves", "spines"]


class Switch(Strict):
    """One switch: its GUID and its place. `name` where the tier's pattern does not give it."""

    guid: Guid
    rack: str
    u: int = Field(gt=0)
    name: str = ""


class SwitchModel(Strict):
    """The switch of the fabric. Label rule `cage/port`: two ports a cage, so port 33 reads `17/1` (QM9700)."""

    product: str
    ports: int = Field(gt=0, le=4096)
    labels: LabelRule = "number"

    def label(self, port: int) -> str:
        """Return what is printed at a port."""
        return self.printed.label(port)

    @property
    def printed(self) -> Labels:
        """How its ports are labelled."""
        return Labels(2 if self.labels == "cage/port" else 0)


class Leaves(Strict):
    """The first tier. `name` may use `{unit}` and `{rail}`; `at` lists unit 1's rails in order, then unit 2's."""

    name: LeafName
    down: Ports
    up: Ports
    at: list[Switch] = Field(min_length=1)


class Spines(Strict):
    """The second tier. `name` may use `{index}`, counted from 1; `per_pair` cables join each leaf and spine."""

    name: SpineName
    per_pair: int = Field(gt=0)
    at: list[Switch] = Field(min_length=1)


class Lengths(Strict):
    """Cable lengths in metres, where the design fixes them."""

    node_leaf: float = Field(default=0, ge=0)
    leaf_spine: float = Field(default=0, ge=0)


class FabricDesign(Spec):
    """The rules of one fabric. `nodes` are names or ranges (`n0001..n0020`), in the order of the leaf ports.

    `hca_label` is what is printed at a node's port and may use `{rail}`; `rate` is width and speed, `4xNDR`.
    `oversubscription` is a leaf's bandwidth down to nodes divided by that up to spines, where down is more.
    `limits` are what links, optics and switches are held to.
    """

    kind: Literal["FabricDesign"]
    site: str = ""
    nodes: list[str] = Field(min_length=1)
    rails: int = Field(gt=0)
    rate: LinkRate
    hca_label: HcaLabel = ""
    oversubscription: float = Field(default=1.0, ge=1)
    switch: SwitchModel
    leaves: Leaves
    spines: Spines
    lengths: Lengths = Lengths()
    cables: list[ExplicitCable] = Field(default=[])
    limits: dict[str, Limit] = Field(default={})

    def node_names(self) -> list[str]:
        """Return the nodes, ranges written out."""
        return self._names

    @cached_property
    def _names(self) -> list[str]:
        return [name for entry in self.nodes for name in spelled_out(entry)]

    @staticmethod
    def spelled_out(entry: str) -> list[str]:
        """Return the nodes of one entry of `nodes`. Raises ValueError."""
        return spelled_out(entry)

    @property
    def down(self) -> range:
        """The leaves' ports for nodes."""
        return span(self.leaves.down)

    @property
    def up(self) -> range:
        """The leaves' ports for spines."""
        return span(self.leaves.up)

    @property
    def units(self) -> int:
        """How many scalable units the nodes fill."""
        return -(-len(self.node_names()) // len(self.down))

    def switches(self) -> Iterator[tuple[str, Tier, int, Switch]]:
        """Yield every switch: its name, its tier, and its number there."""
        for number, leaf in enumerate(self.leaves.at):
            unit, rail = divmod(number, self.rails)
            yield leaf.name or self.leaves.name.format(unit=unit + 1, rail=rail), "leaves", number, leaf
        for number, spine in enumerate(self.spines.at):
            yield spine.name or self.spines.name.format(index=number + 1), "spines", number, spine

    def ports_used(self, tier: Tier, number: int) -> set[int]:
        """Return the ports of a switch that the rules cable."""
        if tier == "spines":
            return set(range(1, len(self.leaves.at) * self.spines.per_pair + 1))
        before = number // self.rails * len(self.down)
        filled = max(0, len(self.node_names()) - before)
        return {*self.down[:filled], *self.up}

    @model_validator(mode="after")
    def _rules_that_fit_together(self) -> FabricDesign:
        """Refuse rules that would need a port twice, or a port or switch that is not there."""
        if found := misfits(self):
            raise Contradiction(*found)
        return self


def spelled_out(entry: str) -> list[str]:
    """Return the names of `n0001..n0020`, or the entry itself. Raises ValueError for ends that do not match."""
    if ".." not in entry:
        return [entry]
    ends = [re.fullmatch(r"(.*?)(\d{1,9})", end) for end in entry.split("..", 1)]
    first, last = ends[0], ends[1]
    if not first or not last or first[1] != last[1] or int(first[2]) > int(last[2]):
        raise ValueError(f"{entry!r} is no range of names; write it as n0001..n0020")
    if int(last[2]) - int(first[2]) >= MOST_NODES:
        raise ValueError(f"{entry!r} is a range of more than {MOST_NODES} names")
    return [f"{first[1]}{number:0{len(first[2])}}" for number in range(int(first[2]), int(last[2]) + 1)]
