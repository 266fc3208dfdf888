"""FabricDesign: the cabling of an InfiniBand fabric, as the few rules that it follows.

A rail-optimised fat tree of two or three tiers. Nodes are taken in order and fill scalable units as large as a leaf
has `down` ports. Unit `s` has one leaf per rail; node `n` of the unit is on port `down[n]` of each, so that rail `r`
of every node meets on leaf `r`. Leaf `l` of a group of spines has `per_pair` cables to every spine `s` of it: leaf
port `up[s × per_pair + k]` to spine port `down[l × per_pair + k]`. Spine `s` of group `g` has `per_pair` cables to
every core `c` of plane `s`: spine port `up[c × per_pair + k]` to core port `g × per_pair + k + 1`.

What is not as the rules have it stands in `overrides`, what they do not give in `devices` and `cables`, and what is
free on purpose in `spares`. A design may also do without rules, and list every cable.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field, model_validator

from assay.model.errors import ConflictError
from assay.model.fabric.design_cables_and_partitions import (
    CableOverride,
    ExplicitDevice,
    FabricPartition,
    LinkRate,
    ListedCable,
    SparePorts,
    expand_node_names,
)
from assay.model.fabric.design_validation import find_design_conflicts
from assay.model.fabric.fat_tree import FatTreeWiring
from assay.model.fabric.switch_tiers import (
    CableLengths,
    CableRates,
    CoreTier,
    FabricSwitch,
    LeafTier,
    SpineTier,
    SwitchModel,
    TierName,
)
from assay.model.specs.node_spec import MetricLimit
from assay.model.specs.spec_document import SpecDocument

HcaLabel = Annotated[str, Field(pattern=r"^([^{}]|\{rail(:0?\d)?\})*$")]


class FabricDesign(SpecDocument):
    """The rules of one fabric. `nodes` are names or ranges (`n0001..n0020`), in the order of the leaf ports.

    `hca_label` is what is printed at a node's port and may use `{rail}`; `rate` is width and speed, `4xNDR`.
    `oversubscription` is a leaf's bandwidth down to nodes divided by that up to spines, where down is more.
    `limits` are what links, optics and switches are held to; `partitions`, where there are any, are all that adapters
    may be members of. Without `leaves`, the `cables` are all there is.
    """

    kind: Literal["FabricDesign"]
    site: str = ""
    nodes: list[str] = Field(default=[])
    rails: int = Field(default=0, ge=0)
    rate: LinkRate
    rates: CableRates = CableRates()
    hca_label: HcaLabel = ""
    oversubscription: float = Field(default=1.0, ge=1)
    switch: SwitchModel | None = None
    leaves: LeafTier | None = None
    spines: SpineTier | None = None
    cores: CoreTier | None = None
    lengths: CableLengths = CableLengths()
    overrides: list[CableOverride] = Field(default=[])
    spares: list[SparePorts] = Field(default=[])
    devices: list[ExplicitDevice] = Field(default=[])
    cables: list[ListedCable] = Field(default=[])
    limits: dict[str, MetricLimit] = Field(default={})
    partitions: list[FabricPartition] = Field(default=[])

    def node_names(self) -> list[str]:
        """Return the nodes, ranges written out."""
        return self._names

    @cached_property
    def _names(self) -> list[str]:
        return [name for entry in self.nodes for name in expand_node_names(entry)]

    def pkeys_of(self, node: str) -> frozenset[int]:
        """Return the P_Keys that the adapters of a node carry, each of 16 bits."""
        return frozenset(one.pkey_value for one in self.partitions if one.includes_node(node))

    @cached_property
    def fat_tree(self) -> FatTreeWiring | None:
        """The rules; None where every cable is listed."""
        if self.leaves is None or self.spines is None or not self.rails:
            return None
        return FatTreeWiring(len(self.node_names()), self.rails, self.leaves, self.spines, self.cores)

    @property
    def tiers(self) -> list[tuple[TierName, LeafTier | SpineTier | CoreTier]]:
        """The tiers that there are, from the nodes up."""
        every: tuple[tuple[TierName, LeafTier | SpineTier | CoreTier | None], ...] = (
            ("leaves", self.leaves),
            ("spines", self.spines),
            ("cores", self.cores),
        )
        return [(name, tier) for name, tier in every if tier is not None]

    def rate_of(self, cables: Literal["node_leaf", "leaf_spine", "spine_core"]) -> str:
        """Return the rate of one tier's cables."""
        return getattr(self.rates, cables) or self.rate

    def list_switch_places(self) -> Iterator[tuple[TierName, int, FabricSwitch]]:
        """Yield every switch of the rules: its tier, and its number there."""
        for name, tier in self.tiers:
            yield from ((name, number, switch) for number, switch in enumerate(tier.at))

    def switches(self) -> Iterator[tuple[str, TierName, int, FabricSwitch]]:
        """Yield every switch of the rules: its name, its tier, and its number there."""
        wiring = self.fat_tree
        for tier, rules in self.tiers if wiring else ():
            for number, switch in enumerate(rules.at):
                name = switch.name or (rules.name.format(**wiring.switch_name_fields(tier, number)) if wiring else "")
                yield name, tier, number, switch

    def used_ports(self, tier: TierName, number: int) -> set[int]:
        """Return the ports of a switch that the rules cable."""
        return self.fat_tree.used_ports(tier, number) if self.fat_tree else set()

    @model_validator(mode="after")
    def _rules_that_fit_together(self) -> FabricDesign:
        """Refuse rules that would need a port twice, or a port or switch that is not there."""
        if found := find_design_conflicts(self):
            raise ConflictError(*found)
        return self
