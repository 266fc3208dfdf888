"""FabricDesign: the cabling of an InfiniBand, Ethernet or NVLink fabric, as rules or as listed cables.

The rules describe a rail-optimised fat tree of two or three tiers. Nodes fill scalable units in order; a unit has as
many nodes as a leaf has `down` ports. Unit `s` has one leaf per rail, and node `n` uses port `down[n]` of each leaf, so
rail `r` of every node meets on leaf `r`. The class docstrings in switches.py describe the tiers above. Rules that name
a port or a switch that is not there, or one port twice, are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Literal

from pydantic import Field, model_validator

from assay.model.errors import ConflictError, FieldConflict
from assay.model.specs.fabric.adapters import AdapterPort, RailPort, find_adapter_port_conflicts, list_rail_ports
from assay.model.specs.fabric.cable import is_ethernet_rate
from assay.model.specs.fabric.design_parts import (
    MAX_DESIGN_NODES,
    CableOverride,
    DeviceGuid,
    ExplicitDevice,
    FabricPartition,
    LinkRate,
    ListedCable,
    SparePorts,
    expand_node_names,
)
from assay.model.specs.fabric.fat_tree_geometry import FatTreeWiring
from assay.model.specs.fabric.nvlink_domain import NvlinkDomain
from assay.model.specs.fabric.switches import (
    MAX_PLANES,
    PLACEHOLDER,
    CableLengths,
    CableRates,
    CoreTier,
    FabricSwitch,
    HcaLabel,
    LeafTier,
    SpineTier,
    SwitchChip,
    SwitchModel,
    TierName,
    fill_pattern,
    parse_switch_position,
)
from assay.model.specs.node.node_spec import MetricLimit
from assay.model.specs.spec_document import SpecDocument


def find_wiring_conflicts(wiring: FatTreeWiring, model: SwitchModel) -> list[FieldConflict]:
    """Return where the rules need a port or switch that is not there, or one port twice."""
    return [*_leaf_conflicts(wiring, model), *_spine_conflicts(wiring, model), *_core_conflicts(wiring, model)]


def _leaf_conflicts(wiring: FatTreeWiring, model: SwitchModel) -> Iterator[FieldConflict]:
    usual = (wiring.leaf_down_ports, wiring.leaf_up_ports)
    others = [(number, leaf) for number, leaf in enumerate(wiring.leaves.at) if leaf.down or leaf.up]
    own = [(("leaves", "at", number), wiring.find_leaf_ports(number)) for number, _ in others]
    for entry, (down, up) in ((("leaves",), usual), *own):
        if {*down} & {*up}:
            message = "leaves: the ports of `down` and `up` overlap: some would take a node's cable and a spine's"
            yield FieldConflict("ASY0080", (*entry, "up"), message, f"begin `up` after port {down[-1]}")
        for tier, ports in (("down", down), ("up", up)):
            if max(ports) > model.port_count:
                message = f"leaves: a {model.product} has {model.port_count} ports, `{tier}` ends at {max(ports)}"
                yield FieldConflict("ASY0081", (*entry, tier), message, f"end it at port {model.port_count} or before")
        if (len(down), len(up)) != tuple(map(len, usual)):
            message = "leaves: a leaf has as many ports to nodes, and to spines, as the others"
            yield FieldConflict(
                "ASY0084", (*entry, "down"), message, "give as many ports as the tier's `down` and `up`"
            )
    yield from _leaf_count_conflicts(wiring)


def _leaf_count_conflicts(wiring: FatTreeWiring) -> Iterator[FieldConflict]:
    given, needed = len(wiring.leaves.at), wiring.unit_count * wiring.rails
    if given != needed:
        nodes = f"{wiring.nodes} nodes at {len(wiring.leaf_down_ports)} a leaf"
        message = f"{wiring.unit_count} units × {wiring.rails} rails need {needed} leaves, not {given} ({nodes})"
        code, fix = ("ASY0081", "add the leaves of another unit") if given < needed else ("ASY0084", "leave them out")
        yield FieldConflict(code, ("leaves", "at"), message, f"{fix}, or correct `nodes`, `rails` or `down`")


def _spine_conflicts(wiring: FatTreeWiring, model: SwitchModel) -> Iterator[FieldConflict]:
    groups, per, up, spines = (
        wiring.spine_group_count,
        wiring.spines.per_pair,
        len(wiring.leaf_up_ports),
        len(wiring.spines.at),
    )
    if spines % groups:
        message = f"{spines} spines do not make {groups} equal groups"
        yield FieldConflict(
            "ASY0084", ("spines", "at"), message, "let every group have as many spines, or correct `pod`"
        )
        return
    if wiring.spines_per_group * per != up:
        message = f"{wiring.spines_per_group} spines × {per} cables do not use the leaves' {up} up ports"
        code = "ASY0081" if wiring.spines_per_group * per > up else "ASY0084"
        yield FieldConflict(code, ("spines", "per_pair"), message, "let spines × per_pair be the number of `up` ports")
    needed, down = wiring.leaves_per_group * per, wiring.spine_down_ports
    if needed > model.port_count:
        needs = f"{wiring.leaves_per_group} leaves × {per} cables"
        message = f"spines: {needs} exceed {model.port_count} ports of a {model.product}"
        yield FieldConflict("ASY0081", ("spines", "per_pair"), message, "take more spines with fewer cables a pair")
    elif needed > len(down):
        message = f"spines: {wiring.leaves_per_group} leaves × {per} cables exceed the {len(down)} ports of `down`"
        yield FieldConflict(
            "ASY0081", ("spines", "down"), message, "widen `down`, or take more spines with fewer cables a pair"
        )
    for name, ports in (("down", down if wiring.spines.down else range(0)), ("up", wiring.spine_up_ports)):
        if ports and max(ports) > model.port_count:
            message = f"spines: a {model.product} has {model.port_count} ports, `{name}` ends at {max(ports)}"
            yield FieldConflict("ASY0081", ("spines", name), message, f"end it at port {model.port_count} or before")


def _core_conflicts(wiring: FatTreeWiring, model: SwitchModel) -> Iterator[FieldConflict]:
    cores, up, down = wiring.cores, wiring.spine_up_ports, wiring.spine_down_ports
    if cores is None:
        if up:
            message = "spines have `up` ports and there are no cores"
            yield FieldConflict("ASY0084", ("spines", "up"), message, "leave `up` out, or add `cores`")
        return
    if not up:
        yield FieldConflict("ASY0084", ("spines", "up"), "cores need the spines' `up` ports", "write `up` as 33..64")
        return
    if {*down} & {*up}:
        message = "spines: the ports of `down` and `up` overlap: some would take a leaf's cable and a core's"
        yield FieldConflict("ASY0080", ("spines", "up"), message, f"begin `up` after port {down[-1]}")
    if len(wiring.spines.at) % wiring.spine_group_count:
        return
    yield from _plane_conflicts(wiring, len(cores.at), cores.per_pair, model)


def _plane_conflicts(wiring: FatTreeWiring, cores: int, per: int, model: SwitchModel) -> Iterator[FieldConflict]:
    up = len(wiring.spine_up_ports)
    if not wiring.plane_count or cores % wiring.plane_count:
        message = f"{cores} cores do not make {wiring.plane_count} equal planes, one for each spine of a group"
        yield FieldConflict("ASY0084", ("cores", "at"), message, "let every plane have as many cores")
        return
    if cores // wiring.plane_count * per != up:
        message = f"{cores // wiring.plane_count} cores a plane × {per} cables do not use the spines' {up} up ports"
        code = "ASY0081" if cores // wiring.plane_count * per > up else "ASY0084"
        yield FieldConflict(
            code, ("cores", "per_pair"), message, "let a plane's cores × per_pair be the number of `up` ports"
        )
    if wiring.spines_per_plane * per > model.port_count:
        needs = f"{wiring.spines_per_plane} spines × {per} cables"
        message = f"cores: {needs} exceed {model.port_count} ports of a {model.product}"
        yield FieldConflict("ASY0081", ("cores", "per_pair"), message, "take more cores with fewer cables a pair")


def find_plane_conflicts(
    tiers: Iterable[tuple[TierName, LeafTier | SpineTier | CoreTier]], planes: int
) -> Iterator[FieldConflict]:
    """Find switches with more or fewer chips than planes, those in another box, and those with ports of a leaf."""
    for name, tier in tiers:
        for number, switch in enumerate(tier.at):
            chips, entry = 1 + len(switch.other_planes), (name, "at", number)
            if chips != planes:
                message = f"planes: {planes}, but {switch.guid} has GUIDs for {chips}"
                fix = "give `guid` for plane 1 and `other_planes` for the others, or correct `planes`"
                yield FieldConflict("ASY0084", (*entry, "other_planes") if chips > 1 else entry, message, fix)
            if name != "leaves" and (switch.down or switch.up):
                message = f"{switch.guid} is no leaf, and has the ports of its tier"
                yield FieldConflict("ASY0084", entry, message, "remove `down` and `up`")
            if planes > 1 and (switch.box or switch.module):
                message = f"{switch.guid} has planes, so it is a box itself"
                yield FieldConflict("ASY0084", (*entry, "box"), message, "remove `box` and `module`")


FIX = "write a name, or a range as n0001..n0020"


def find_unreadable_ranges(
    nodes: Sequence[str], gaps: Sequence[str], partitions: Sequence[FabricPartition]
) -> Iterator[FieldConflict]:
    """Find names and ranges that are none, and nodes beyond the most that a design may have."""
    for at, partition in enumerate(partitions):
        for number, entry in enumerate(partition.nodes):
            try:
                expand_node_names(entry)
            except ValueError as wrong:
                yield FieldConflict("ASY0084", ("partitions", at, "nodes", number), str(wrong), FIX)
    for number, entry in enumerate(gaps):
        try:
            expand_node_names(entry)
        except ValueError as wrong:
            yield FieldConflict("ASY0084", ("gaps", number), str(wrong), FIX)
    count = 0
    for number, entry in enumerate(nodes):
        try:
            count += len(expand_node_names(entry))
        except ValueError as wrong:
            yield FieldConflict("ASY0084", ("nodes", number), str(wrong), FIX)
        if count > MAX_DESIGN_NODES:
            message = f"more than {MAX_DESIGN_NODES} nodes"
            yield FieldConflict("ASY0084", ("nodes", number), message, "split the fabric, or correct the range")
            return


EntryPath = tuple[str | int, ...]


class FabricDesign(SpecDocument):
    """The cabling of one fabric. `nodes` are names or ranges (`n0001..n0020`), in the order of the leaf ports.

    - `gaps` are nodes that are gone. They stay in `nodes`; their leaf ports stay free, so no other node's cables move.
    - Leaf `l` of a spine group has `per_pair` cables to every spine `s` of it: leaf port `up[s × per_pair + k]` (with
      `trunk: spread`, `up[k × spines + s]`) to spine port `down[l × per_pair + k]`.
    - Spine `s` of group `g` has `per_pair` cables to every core `c` of plane `s`: spine port `up[c × per_pair + k]` to
      core port `g × per_pair + k + 1`.
    - `overrides` change cables of the rules, `devices` and `cables` add to them, `spares` are free on purpose. Without
      `leaves`, `cables` lists every cable.
    - `hca_label` is the label at a node's port and may use `{rail}` or `{rail+1}`; or a list, rail 0 first. Ports
      `1/1` and `1/2` share a plug. `rate` is width and speed, `4xNDR`; with Ethernet, Gb/s: `400G`.
      `oversubscription` is a leaf's bandwidth down to nodes divided by its bandwidth up to spines, at least 1.
    - `m_key_protect`: the least protect bits of each adapter's M_Key (1 to 3), without which a host may set ports.
    - `limits` apply to links, optics and switches. If there are `partitions`, adapters may be members of no other.

    `adapters`: the GUIDs of the adapters, one a rail, of nodes that the inventory does not have. `adapter_names`: what
    nodes without a spec call their adapters, rail 0 first. `site`: where its switches stand. `rails`: adapters of each
    node, one a rail. `adapter_ports`: where adapters have several cabled ports, which one each rail is, rail 0 first:
    `1/2` is port 2 of the second adapter (adapters count from 0). `planes`: chips of each switch, and ports of each
    adapter: port 2 leads to the leaf's chip of plane 2. `rates`: rates that differ by tier. `switch`: the model of all
    switches. `leaves`: the first tier, which has the nodes. `spines`: the second tier. `cores`: the third tier, if
    there is one. `lengths`: cable lengths by tier. `overrides`: cables that differ from the rules. `devices`: devices
    that the rules do not include. `cables`: cables that the rules do not include, or all. `spares`: ports that are free
    on purpose. `nvlink`: the NVLink domain of a rack, in place of leaves and spines. `discover`: the words of the
    command that prints the discovery, where a fleet has several kinds of fabric. `facts`: commands that describe its
    ports, by name. Without the two, `fabric_discover` and `fabric_facts` of the inventory apply.
    """

    kind: Literal["FabricDesign"]
    site: str = ""
    nodes: list[str] = Field(default=[])
    gaps: list[str] = Field(default=[])
    adapters: dict[str, list[DeviceGuid]] = Field(default={})
    adapter_names: list[str] = Field(default=[])
    rails: int = Field(default=0, ge=0)
    adapter_ports: list[AdapterPort] = Field(default=[])
    planes: int = Field(default=1, ge=1, le=MAX_PLANES)
    rate: LinkRate
    rates: CableRates = CableRates()
    hca_label: HcaLabel | list[str] = ""
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
    m_key_protect: int | None = Field(default=None, ge=1, le=3)
    nvlink: NvlinkDomain | None = None
    discover: list[str] = Field(default=[])
    facts: dict[str, list[str]] = Field(default={})

    @property
    def kind_of_links(self) -> Literal["infiniband", "roce"]:
        """What its cables carry: with rates of Ethernet (`400G`), RoCE."""
        return "roce" if is_ethernet_rate(self.rate) else "infiniband"

    @property
    def split(self) -> int:
        """In how many ports each cage of its switches is split."""
        return self.switch.split if self.switch else 1

    def node_names(self) -> list[str]:
        """Return the names of all nodes, with ranges expanded, without gaps."""
        return self._names

    @cached_property
    def _names(self) -> list[str]:
        return [name for name in self.node_places if name] if self.gaps else self.node_places

    @cached_property
    def node_places(self) -> list[str]:
        """The node at each place, in the order of the leaf ports; "" for a gap."""
        gone = self.gap_names
        every = (name for entry in self.nodes for name in expand_node_names(entry))
        return ["" if name in gone else name for name in every] if gone else list(every)

    @cached_property
    def gap_names(self) -> frozenset[str]:
        """The names of nodes that are gone, and whose places stay free."""
        return frozenset(name for entry in self.gaps for name in expand_node_names(entry))

    @cached_property
    def rail_ports(self) -> list[RailPort]:
        """The adapter and the port of each rail."""
        return list_rail_ports(self.rails, self.adapter_ports)

    @cached_property
    def adapters_per_node(self) -> int:
        """How many adapters each node has."""
        return max((adapter for adapter, _ in self.rail_ports), default=-1) + 1

    def label_rail(self, rail: int) -> str:
        """Return the label at a node's port of a rail, "" where none is declared."""
        if isinstance(self.hca_label, str):
            return fill_pattern(self.hca_label, {"rail": rail})
        return self.hca_label[rail] if rail < len(self.hca_label) else ""

    def pkeys_of(self, node: str) -> frozenset[int]:
        """Return the 16-bit P_Keys of a node's adapters."""
        return frozenset(partition.pkey_value for partition in self.partitions if partition.includes_node(node))

    @cached_property
    def fat_tree(self) -> FatTreeWiring | None:
        """The wiring that the rules describe, None if every cable is listed."""
        if self.leaves is None or self.spines is None or not self.rails:
            return None
        places = self.node_places
        free = frozenset(number for number, name in enumerate(places) if not name)
        return FatTreeWiring(len(places), self.rails, self.leaves, self.spines, self.cores, free)

    @property
    def tiers(self) -> list[tuple[TierName, LeafTier | SpineTier | CoreTier]]:
        """The tiers of this design, from the nodes upwards."""
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
        """Yield tier, number in the tier, and switch, for every switch of the rules."""
        for name, tier in self.tiers:
            yield from ((name, number, switch) for number, switch in enumerate(tier.at))

    def switches(self) -> Iterator[tuple[str, TierName, int, FabricSwitch]]:
        """Yield name, tier, number in the tier, and switch, for every switch of the rules."""
        wiring = self.fat_tree
        for tier, rules in self.tiers if wiring else ():
            for number, switch in enumerate(rules.at):
                name = switch.name or (wiring.name_switch(rules.name, tier, number) if wiring else "")
                yield name, tier, number, switch

    def chips(self) -> Iterator[SwitchChip]:
        """Yield every switch of the rules; of a switch with planes, the chip of each."""
        for name, _, _, switch in self.switches():
            yield from switch.list_chips(name)

    def used_ports(self, tier: TierName, number: int) -> set[int]:
        """Return the ports of a switch that have a cable by the rules."""
        return self.fat_tree.used_ports(tier, number) if self.fat_tree else set()

    @model_validator(mode="after")
    def _rules_that_fit_together(self) -> FabricDesign:
        """Refuse rules that need a port twice, or a port or switch that does not exist."""
        if conflicts := _find_design_conflicts(self):
            raise ConflictError(*conflicts)
        return self


def _find_design_conflicts(design: FabricDesign) -> list[FieldConflict]:
    """Return what contradicts itself. Where a range or part is missing, nothing that depends on it is reported."""
    unreadable = list(find_unreadable_ranges(design.nodes, design.gaps, design.partitions))
    if unfit := unreadable or list(_missing_parts(design)):
        return unfit
    wiring = design.fat_tree
    rules = find_wiring_conflicts(wiring, design.switch) if wiring and design.switch else []
    return [
        *rules,
        *find_plane_conflicts(design.tiers, design.planes),
        *find_adapter_port_conflicts(design.rails, design.adapter_ports, design.planes),
        *_unknown_gaps(design),
        *_misplaced_names(design),
        *_unknown_partition_nodes(design),
        *_duplicates(design),
    ]


def _unknown_gaps(design: FabricDesign) -> Iterator[FieldConflict]:
    """Find gaps that are at no place of the design, and the same gap twice."""
    known = {name for entry in design.nodes for name in expand_node_names(entry)}
    for number, entry in enumerate(design.gaps):
        if unknown := [name for name in expand_node_names(entry) if name not in known]:
            message = f"the gap {unknown[0]} is not among `nodes`, so it has no place"
            fix = "keep its name in `nodes`, where it says which ports stay free, or remove the gap"
            yield FieldConflict("ASY0084", ("gaps", number), message, fix)


def _missing_parts(design: FabricDesign) -> Iterator[FieldConflict]:
    """Find rules with a missing part, and designs without any cable."""
    parts = {name: bool(getattr(design, name)) for name in ("leaves", "spines", "nodes", "rails", "switch")}
    given = [name for name in ("leaves", "spines", "nodes", "cores") if getattr(design, name)]
    if given:
        for name in (name for name, is_given in parts.items() if not is_given):
            yield FieldConflict(
                "ASY0084", (name,), f"{given[0]} need {name}", f"add {name}, or list every cable in `cables`"
            )
        if design.nvlink:
            yield FieldConflict("ASY0084", ("nvlink",), f"nvlink beside {given[0]}", "give each a design of its own")
    elif not design.cables and not design.devices and not design.nvlink:
        yield FieldConflict(
            "ASY0084", (), "a design without leaves and without cables", "add rules, or list the `cables`"
        )
    elif design.overrides:
        yield FieldConflict(
            "ASY0084", ("overrides",), "there are no rules to override", "correct the `cables` themselves"
        )


def _misplaced_names(design: FabricDesign) -> Iterator[FieldConflict]:
    """Find the first switch of each tier whose name belongs, by the tier's pattern, to another place."""
    reported: set[str] = set()
    for name, tier, number, switch in design.switches():
        pattern = dict(design.tiers)[tier].name
        if tier in reported or not switch.name or parse_switch_position(pattern, name) is None or not design.fat_tree:
            continue
        expected = design.fat_tree.name_switch(pattern, tier, number)
        if expected != name and PLACEHOLDER.search(pattern):
            reported.add(tier)
            message = f"{name} stands where {expected} belongs"
            yield FieldConflict("ASY0084", (tier, "at", number), message, f"add {expected}, or correct a name")


def _unknown_partition_nodes(design: FabricDesign) -> Iterator[FieldConflict]:
    """Find partition members that are not nodes of the design. A design of listed cables only has no nodes."""
    known = {*design.node_names(), *design.gap_names}
    for at, partition in enumerate(design.partitions if known else ()):
        for number, entry in enumerate(partition.nodes):
            if unknown := [name for name in expand_node_names(entry) if name not in known]:
                message = f"{unknown[0]} is a member of {partition.pkey}, and no node of this design"
                fix = "add it to `nodes`, or correct the name"
                yield FieldConflict("ASY0084", ("partitions", at, "nodes", number), message, fix)


def _duplicates(design: FabricDesign) -> Iterator[FieldConflict]:
    seen: set[tuple[str, str]] = set()
    for path, kind, name in _unique_entries(design):
        if (kind, name) in seen:
            yield FieldConflict("ASY0085", path, f"{kind} {name} is given twice", "keep one of the two")
        seen.add((kind, name))


def _unique_entries(design: FabricDesign) -> Iterator[tuple[EntryPath, str, str]]:
    """Yield path, kind and name of everything that may occur only once."""
    for number, entry in enumerate(design.nodes):
        yield from ((("nodes", number), "node", name) for name in expand_node_names(entry))
    for name, tier, number, switch in design.switches():
        entry_path = (tier, "at", number)
        yield (*entry_path, "guid"), "guid", switch.guid
        yield from (((*entry_path, "other_planes", at), "guid", guid) for at, guid in enumerate(switch.other_planes))
        yield (*entry_path, "u"), "place", f"{switch.rack} U{switch.u}"
        yield ((*entry_path, "name") if switch.name else (tier, "name")), "name", name
    for number, device in enumerate(design.devices):
        yield ("devices", number, "guid"), "guid", device.guid
    for number, partition in enumerate(design.partitions):
        kind = f"{partition.membership} membership in {partition.pkey}, of"
        if not partition.nodes:
            yield ("partitions", number), kind, "every node"
        for place, entry in enumerate(partition.nodes):
            yield from ((("partitions", number, "nodes", place), kind, name) for name in expand_node_names(entry))
    for number, override in enumerate(design.overrides):
        yield ("overrides", number), "override of", f"port {override.port} of {override.device}"
