"""FabricDesign: the cabling of an InfiniBand fabric, as the few rules that it follows.

A rail-optimised fat tree of two tiers. Nodes are taken in order and fill scalable units as large as a leaf has
`down` ports. Unit `s` has one leaf per rail; node `n` of the unit is on port `down[n]` of each, so that rail `r`
of every node meets on leaf `r`. Leaf `l` (units first, then rails) has `per_pair` cables to every spine `s`:
leaf port `up[s × per_pair + k]` to spine port `l × per_pair + k + 1`.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from assay.model.spec import Spec, Strict

Guid = Annotated[str, Field(pattern=r"^0x[0-9a-f]{16}$")]


def span(text: str) -> range:
    """Return the numbers of `first..last`, both included."""
    first, last = text.split("..")
    return range(int(first), int(last) + 1)


def _checked(ports: str) -> str:
    if not span(ports) or span(ports)[0] < 1:
        raise ValueError(f"{ports!r} holds no ports; write it as 1..32")
    return ports


Ports = Annotated[str, Field(pattern=r"^\d+\.\.\d+$"), AfterValidator(_checked)]
LabelRule = Literal["number", "cage/port"]


class Switch(Strict):
    """One switch: its GUID and its place. `name` where the tier's pattern does not give it."""

    guid: Guid
    rack: str
    u: int = Field(gt=0)
    name: str = ""


class SwitchModel(Strict):
    """The switch of the fabric. Label rule `cage/port`: two ports a cage, so port 33 reads `17/1` (QM9700)."""

    product: str
    ports: int = Field(gt=0)
    labels: LabelRule = "number"

    def label(self, port: int) -> str:
        """Return what is printed at a port."""
        return str(port) if self.labels == "number" else f"{(port + 1) // 2}/{2 - port % 2}"


class Leaves(Strict):
    """The first tier. `name` may use `{unit}` and `{rail}`; `at` lists unit 1's rails in order, then unit 2's."""

    name: str
    down: Ports
    up: Ports
    at: list[Switch] = Field(min_length=1)


class Spines(Strict):
    """The second tier. `name` may use `{index}`, counted from 1; `per_pair` cables join each leaf and spine."""

    name: str
    per_pair: int = Field(gt=0)
    at: list[Switch] = Field(min_length=1)


class Lengths(Strict):
    """Cable lengths in metres, where the design fixes them."""

    node_leaf: float = Field(default=0, ge=0)
    leaf_spine: float = Field(default=0, ge=0)


class FabricDesign(Spec):
    """The rules of one fabric. `nodes` are names or ranges (`n0001..n0020`), in the order of the leaf ports.

    `hca_label` is what is printed at a node's port and may use `{rail}`; `rate` is width and speed, `4xNDR`.
    """

    kind: Literal["FabricDesign"]
    site: str = ""
    nodes: list[str] = Field(min_length=1)
    rails: int = Field(gt=0)
    rate: str = Field(pattern=r"^(1|2|4|8|12)x(SDR|DDR|QDR|FDR10|FDR|EDR|HDR|NDR|XDR)$")
    hca_label: str = ""
    switch: SwitchModel
    leaves: Leaves
    spines: Spines
    lengths: Lengths = Lengths()

    def node_names(self) -> list[str]:
        """Return the nodes, ranges written out."""
        return [name for entry in self.nodes for name in spelled_out(entry)]

    @property
    def units(self) -> int:
        """How many scalable units the nodes fill."""
        return -(-len(self.node_names()) // len(span(self.leaves.down)))

    @model_validator(mode="after")
    def _rules_that_fit_together(self) -> FabricDesign:
        """Refuse rules that would need a port twice, or a port or switch that is not there."""
        if wrong := self._misfits():
            raise ValueError("; ".join(wrong))
        return self

    def _misfits(self) -> list[str]:
        down, up = span(self.leaves.down), span(self.leaves.up)
        leaves, spines, wrong = len(self.leaves.at), len(self.spines.at), []
        if leaves != self.units * self.rails:
            wrong.append(f"{self.units} units × {self.rails} rails need {self.units * self.rails} leaves, not {leaves}")
        if set(down) & set(up):
            wrong.append("leaves: the ports of `down` and `up` overlap")
        if max(*down, *up) > self.switch.ports:
            wrong.append(f"leaves: a {self.switch.product} has {self.switch.ports} ports")
        if spines * self.spines.per_pair != len(up):
            wrong.append(f"{spines} spines × {self.spines.per_pair} cables do not use the leaves' {len(up)} up ports")
        if leaves * self.spines.per_pair > self.switch.ports:
            wrong.append(f"spines: {leaves} leaves × {self.spines.per_pair} cables exceed {self.switch.ports} ports")
        wrong += [f"{what} {one} is given twice" for what, one in self._repeated()]
        return wrong

    def _repeated(self) -> list[tuple[str, str]]:
        switches = [*self.leaves.at, *self.spines.at]
        named = [("node", name) for name in self.node_names()]
        guids = [("guid", switch.guid) for switch in switches]
        places = [("place", f"{switch.rack} U{switch.u}") for switch in switches]
        return [one for one, times in Counter(named + guids + places).items() if times > 1]


def spelled_out(entry: str) -> list[str]:
    """Return the names of `n0001..n0020`, or the entry itself. Raises ValueError for ends that do not match."""
    if ".." not in entry:
        return [entry]
    ends = [re.fullmatch(r"(.*?)(\d+)", end) for end in entry.split("..", 1)]
    first, last = ends[0], ends[1]
    if not first or not last or first[1] != last[1] or int(first[2]) > int(last[2]):
        raise ValueError(f"{entry!r} is no range of names; write it as n0001..n0020")
    return [f"{first[1]}{number:0{len(first[2])}}" for number in range(int(first[2]), int(last[2]) + 1)]
