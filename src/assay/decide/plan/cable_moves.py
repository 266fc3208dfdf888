"""The cables to move, as a work order: plugs that move where a fabric's structure changes, and replaced adapters.

A fabric is compiled cable by cable only if its structure changes. The old design is compared as if a scan had
discovered it: of a pair of cables, as it is and as it will be, one plug stays. A base with cables that cannot be
compiled must not block their repair: it takes the design of the head.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Literal

from assay.decide.plan.inputs import FleetRevision
from assay.fabric.compare.compare import compare_cabling
from assay.fabric.compare.discrepancy import CablePair, CablingDiscrepancy
from assay.fabric.compare.shared_plugs import drop_other_planes, find_plugs
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.compiler import compile_topology
from assay.fabric.design.devices import DesignedDevice
from assay.fabric.design.node_cables import digest_node_cables
from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice, FabricDiscovery
from assay.model.errors import AssayError
from assay.model.facts import fact, internal
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.fabric.cable import Cable, CableEnd, PortId
from assay.model.specs.fabric.design_parts import ExplicitCable, ExplicitEnd
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.specs.fabric.nvlink_domain import NvlinkDomain

CablingJobKind = Literal["swap", "move", "lay", "take-out", "device-moves", "device-changes", "rate", "length"]


@fact
class CablingJob:
    """One piece of work on cables."""

    fabric: str
    """The fabric."""
    what: CablingJobKind
    """What kind of work it is."""
    steps: tuple[str, ...]
    """What technicians do, in order."""
    nodes: tuple[str, ...]
    """The nodes that lose links meanwhile."""
    place: tuple[str, int] = internal(default=("", 0))
    """What sorts the jobs."""


def nodes_losing_links(jobs: Iterable[CablingJob]) -> set[str]:
    """Return the nodes that lose links during the work."""
    return {node for job in jobs for node in job.nodes}


def find_moved_plug(expected: Cable, observed: Cable) -> tuple[CableEnd, CableEnd, CableEnd]:
    """Return the end that both cables share, where the other plug is, and where it belongs."""
    seen = {end.port_id for end in observed.ends}
    kept = next(end for end in expected.ends if end.port_id in seen)
    right = next(end for end in expected.ends if end.port_id != kept.port_id)
    wrong = next(end for end in observed.ends if end.port_id != kept.port_id)
    return kept, wrong, right


class _FabricChange:
    """One fabric, before and after."""

    def __init__(self, name: str, old: CompiledTopology, new: CompiledTopology) -> None:
        self.name = name
        self.old = old
        self.new = new
        self.lengths = {_cable_ports(cable): cable.length_m for cable in new.cables}
        self.ends: dict[PortId, CableEnd] = {}

    def jobs(self) -> list[CablingJob]:
        discrepancies = compare_cabling(self.new, _as_discovery(self.old, self.new)).discrepancies
        return [self._job(discrepancy) for discrepancy in drop_other_planes(discrepancies)]

    def _job(self, discrepancy: CablingDiscrepancy) -> CablingJob:
        kind, steps = self._work(discrepancy)
        ends = [self._resolve_end(end) for end in discrepancy.ends]
        nodes = tuple(sorted({end.node for end in ends} - {""}))
        place = min(((end.rack, end.u) for end in ends), default=("", 0))
        return CablingJob(self.name, kind, steps, nodes, place)

    def _work(self, discrepancy: CablingDiscrepancy) -> tuple[CablingJobKind, tuple[str, ...]]:
        if discrepancy.kind == "swap":
            return "swap", (discrepancy.corrections[0], *(self._swap_step(pair) for pair in discrepancy.cables))
        if discrepancy.kind == "device-replaced":
            new = next(end for end in discrepancy.ends if end.device == discrepancy.device)
            old = next(end for end in discrepancy.ends if end.guid not in self.new.devices)
            switch = f"replace the switch {new.device} ({new.rack} U{new.u}): {old.guid} by {new.guid}"
            return "device-changes", (switch, "its cables stay")
        # of each plug one pair of old and new cable
        of_plugs = {find_plugs(pair): pair for pair in reversed(discrepancy.cables)}
        pairs: Sequence[CablePair] = tuple(of_plugs.values())[::-1]
        steps = tuple(step for pair in pairs for step in self._steps(pair))
        if all(pair.observed is None for pair in discrepancy.cables):
            return "lay", steps
        if all(pair.expected is None for pair in discrepancy.cables):
            return "take-out", steps
        return "move", steps

    def _steps(self, pair: CablePair) -> Iterator[str]:
        """Return the steps for one cable: lay it, remove it, or move one of its plugs."""
        if pair.expected and pair.observed:
            kept, wrong, right = find_moved_plug(pair.expected, pair.observed)
            yield f"move the plug from {self._end(wrong)} to {self._end(right)}{self._length(pair.expected)}"
            yield f"the other plug stays in {self._end(kept)}"
        elif pair.expected:
            ends = " to ".join(self._end(end) for end in pair.expected.ends)
            yield f"lay a cable from {ends}{self._length(pair.expected)}"
        elif pair.observed:
            ends = " and ".join(self._end(end) for end in pair.observed.ends)
            yield f"take out the cable between {ends}"

    def _swap_step(self, pair: CablePair) -> str:
        cable = pair.expected
        assert cable is not None, "a swap exchanges designed cables"
        return f"then {self._end(cable.a)} leads to {self._end(cable.b)}{self._length(cable)}"

    def _end(self, end: CableEnd) -> str:
        return str(self._resolve_end(end))

    def _resolve_end(self, end: CableEnd) -> CableEnd:
        """Return an end with its rack: of the new design, or of the old one for a device that is removed."""
        port = end.port_id
        if port not in self.ends:
            self.ends[port] = self.new.end(port) or self.old.end(port) or end
        return self.ends[port]

    def _length(self, cable: Cable) -> str:
        metres = self.lengths.get(_cable_ports(cable), 0)
        return f", {metres:g} m" if metres else ""


def _cable_ports(cable: Cable) -> frozenset[PortId]:
    return frozenset((cable.a.port_id, cable.b.port_id))


def _as_discovery(old: CompiledTopology, new: CompiledTopology) -> FabricDiscovery:
    """Return a design as if a scan had found it, at the new rates: one line reports changed rates for all cables."""
    cables = []
    for cable in old.cables:
        now = new.cable_at(cable.a.port_id) or new.cable_at(cable.b.port_id) or cable
        cables.append(DiscoveredCable(cable.a.port_id, cable.b.port_id, now.rate))
    devices = [
        DiscoveredDevice(device.guid, device.kind, device.ports, device.description) for device in old.devices.values()
    ]
    return FabricDiscovery(cables, {device.guid: device for device in devices})


def find_adapter_nodes(cables: Iterable[ExplicitCable]) -> set[str]:
    """Return the node of each adapter that listed cables may name: `n0001 mlx5_0` is one of n0001."""
    return {end.device.partition(" ")[0] for cable in cables for _, end in cable.ends}


def find_adapter_replacements(before: Fleet, after: Fleet) -> tuple[list[CablingJob], Fleet]:
    """Return the replacements, and the old fleet with the new adapters in it.

    If a GUID is known at another place too, that is a move and no replacement; the cables report it.
    """
    kept = [node for name, node in after.nodes.items() if name in before.nodes]
    touched = [node for node in kept if node.hca_guids != before.nodes[node.name].hca_guids]
    if not touched:
        return [], before
    old, new = _guids(before), _guids(after)
    nodes, jobs = dict(before.nodes), []
    designs = {
        name: design
        for design in after.designs.values()
        for name in (*find_adapter_nodes(design.cables), *design.node_names())
    }
    for node in touched:
        pairs = zip(before.nodes[node.name].hca_guids, node.hca_guids, strict=False)
        fresh = {rail: two for rail, two in enumerate(pairs) if two[0] not in new and two[1] not in old}
        old_node = before.nodes[node.name]
        guids = [fresh[rail][1] if rail in fresh else guid for rail, guid in enumerate(old_node.hca_guids)]
        nodes[node.name] = replace(old_node, hca_guids=tuple(guids))
        if fresh and node.name in designs:
            jobs.append(_job(designs[node.name], after, node, fresh))
    return jobs, replace(before, nodes=nodes)


def _guids(fleet: Fleet) -> set[str]:
    return {guid for node in fleet.nodes.values() for guid in node.hca_guids}


def _job(design: FabricDesign, fleet: Fleet, node: Node, fresh: dict[int, tuple[str, str]]) -> CablingJob:
    steps = (f"{node.name} ({node.rack} U{node.u}): replace", *_steps(design, fleet, node, fresh), "their cables stay")
    return CablingJob(design.name, "device-changes", steps, (node.name,), (node.rack, node.u))


def _steps(design: FabricDesign, fleet: Fleet, node: Node, fresh: dict[int, tuple[str, str]]) -> Iterator[str]:
    names = {hca.rail: hca.name for hca in fleet.spec_of(node.name).hcas}
    for rail, (was, will) in fresh.items():
        label = design.label_rail(rail)
        yield f"{names.get(rail, f'rail {rail}')}{f', port {label}' if label else ''}: {was} by {will}"


ListedEnds = tuple[tuple[str, int, str], tuple[str, int, str]]


def describe_listed_cables(design: FabricDesign, fleet: Fleet) -> list[object]:
    """Return what decides which ports the list connects: its ends, and the devices with these names."""
    if not design.cables:
        return []
    named = [(chip.name, chip.guid) for chip in design.chips()]
    adapters = [
        (name, fleet.nodes[name].hca_guids) for name in sorted(find_adapter_nodes(design.cables)) if name in fleet.nodes
    ]
    return [sorted(map(_ends, design.cables)), named, adapters]


def find_listed_changes(old: FabricDesign, new: FabricDesign) -> Iterator[CablingJob]:
    """Yield listed cables that stay in their place but change their rate or length."""
    known = set(new.node_names())
    was = {_ends(cable): cable for cable in old.cables}
    for cable in new.cables:
        before = was.get(_ends(cable))
        if before is None:
            continue
        ends = f"the cable from {_format_end(cable.a)} to {_format_end(cable.b)}"
        names = tuple(sorted(find_adapter_nodes([cable]) & known))
        if cable.rate and cable.rate != (before.rate or old.rate):
            yield CablingJob(new.name, "rate", (f"{ends}: {before.rate or old.rate} → {cable.rate}",), names)
        if cable.length_m != before.length_m:
            yield CablingJob(new.name, "length", (f"{ends}: {before.length_m:g} m → {cable.length_m:g} m",), names)


def _ends(cable: ExplicitCable) -> ListedEnds:
    """Return a cable's ends, in the same order whichever end is listed first."""
    near, far = sorted((end.device, end.port, end.guid or "") for _, end in cable.ends)
    return near, far


def _format_end(end: ExplicitEnd) -> str:
    return f"{end.device} port {end.port}"


CABLE_TIERS: tuple[Literal["node_leaf", "leaf_spine", "spine_core"], ...] = ("node_leaf", "leaf_spine", "spine_core")


def plan_cabling_jobs(before: Fleet, after: Fleet) -> tuple[CablingJob, ...]:
    """Return the work that turns the designed cables of one revision into those of the other, rack by rack.

    Raises AssayError for a design that cannot be compiled.
    """
    adapters, known = find_adapter_replacements(before, after)
    jobs = [*adapters]
    for name in sorted({*before.designs, *after.designs}):
        old, new = before.designs.get(name), after.designs.get(name)
        was, will = (design.nvlink if design else None for design in (old, new))
        if was or will:
            jobs += _changed_domain(name, was, will)
        elif old is None or new is None:
            jobs += _whole_fabric(before, old, "take-out") if old else _whole_fabric(after, new, "lay") if new else ()
        else:
            jobs += _changed_fabric(known, after, old, new)
    return tuple(sorted(jobs, key=lambda job: (job.fabric, job.place, job.steps)))


def find_recabled_nodes(before: Fleet, after: Fleet, jobs: Iterable[CablingJob]) -> set[str]:
    """Return the nodes whose designed cables are others after this work: other ends or another rate."""
    fabrics = {job.fabric for job in jobs}
    old, new = digest_node_cables(before, fabrics), digest_node_cables(after, fabrics)
    return {node for node in old.keys() | new.keys() if old.get(node) != new.get(node)}


def _changed_fabric(before: Fleet, after: Fleet, old: FabricDesign, new: FabricDesign) -> Iterator[CablingJob]:
    if _structure(old, before) != _structure(new, after):
        yield from _FabricChange(new.name, compile_topology(old, before), compile_topology(new, after)).jobs()
    if old != new:
        yield from _moved_switches(before, after, old, new)
        yield from _tier_changes(old, new)
        yield from find_listed_changes(old, new)


def _structure(design: FabricDesign, fleet: Fleet) -> tuple[object, ...]:
    """Return what decides which port is connected to which."""
    nodes = (fleet.nodes.get(name) for name in design.node_names())
    guids = [node and node.hca_guids for node in nodes]
    rules = [tier.model_dump(exclude={"name", "at"}) for _, tier in design.tiers]
    switches = [(tier, switch.guid, *switch.other_planes) for tier, _, switch in design.list_switch_places()]
    devices = [(device.name, device.guid) for device in design.devices]
    gaps = design.fat_tree.gaps if design.fat_tree else ()
    listed = describe_listed_cables(design, fleet)
    return design.rail_ports, rules, switches, guids, gaps, devices, design.overrides, listed


def _whole_fabric(fleet: Fleet, design: FabricDesign, kind: CablingJobKind) -> Iterator[CablingJob]:
    cables = compile_topology(design, fleet).cables
    counts = Counter(cable.a.rack for cable in cables)
    reason, done = {"lay": ("a new fabric", "lay")}.get(kind, ("the fabric is no longer designed", "take out"))
    steps = [f"rack {rack}: {done} {count} cables" for rack, count in sorted(counts.items())]
    yield CablingJob(design.name, kind, (f"{reason}: {len(cables)} cables", *steps), tuple(sorted(design.node_names())))


def _changed_domain(name: str, old: NvlinkDomain | None, new: NvlinkDomain | None) -> Iterator[CablingJob]:
    """Yield the work on a rack's NVLink domain: trays that come or go. Nobody lays its links one by one."""
    if not (old and new):
        kind: CablingJobKind = "lay" if new else "take-out"
        reason, domain = ("a new NVLink domain", new) if new else ("the NVLink domain is no longer designed", old)
        if domain:
            trays = f"{len(domain.node_names)} compute trays, {domain.switch_trays} switch trays"
            yield CablingJob(name, kind, (f"{reason}: {trays}",), tuple(sorted(domain.node_names)))
        return
    steps = []
    for tray, (was, will) in enumerate(zip_longest(old.node_names, new.node_names, fillvalue="")):
        if was != will:
            change = f"{was} → {will}" if was and will else f"insert {will}" if will else f"take out {was}"
            steps.append(f"compute tray {tray}: {change}")
    touched = {*old.node_names} ^ {*new.node_names}
    if old.switch_trays != new.switch_trays:
        steps.append(f"switch trays: {old.switch_trays} → {new.switch_trays}")
        touched = {*old.node_names, *new.node_names}
    if steps:
        yield CablingJob(name, "device-changes", ("other trays", *steps), tuple(sorted(touched)))


def _moved_switches(before: Fleet, after: Fleet, old: FabricDesign, new: FabricDesign) -> Iterator[CablingJob]:
    was = {switch.guid: (switch.rack, switch.u) for _, _, switch in old.list_switch_places()}
    moved = {
        switch.guid
        for _, _, switch in new.list_switch_places()
        if was.get(switch.guid, (switch.rack, switch.u)) != (switch.rack, switch.u)
    }
    if not moved:
        return
    there, here = compile_topology(new, after), compile_topology(old, before).devices
    for guid in moved:
        cables = there.cables_of_device(guid)
        nodes = {end.node for cable in cables for end in cable.ends} - {""}
        device = there.devices[guid]
        step = f"move the switch {device.name} from {_format_place(here[guid])} to {_format_place(device)}"
        steps = (step, f"its {len(cables)} cables go with it")
        yield CablingJob(new.name, "device-moves", steps, tuple(sorted(nodes)), (here[guid].rack, here[guid].u))


def _tier_changes(old: FabricDesign, new: FabricDesign) -> Iterator[CablingJob]:
    """Yield the changes of all cables of the fabric, or of one tier, at once."""
    nodes = tuple(sorted(new.node_names()))
    counts = _counts(new)
    if old.rate != new.rate:
        yield CablingJob(new.name, "rate", (f"all {sum(counts.values())} cables: {old.rate} → {new.rate}",), nodes)
    for tier, (count, named) in zip(CABLE_TIERS, zip(counts.values(), counts, strict=True), strict=True):
        touched = nodes if tier == "node_leaf" else ()
        was, will = getattr(old.lengths, tier), getattr(new.lengths, tier)
        if was != will and count:
            step = f"{count} cables between {named}: {was:g} m → {will:g} m"
            yield CablingJob(new.name, "length", (step,), touched)
        if old.rate == new.rate and old.rate_of(tier) != new.rate_of(tier) and count:
            step = f"{count} cables between {named}: {old.rate_of(tier)} → {new.rate_of(tier)}"
            yield CablingJob(new.name, "rate", (step,), touched)


def _counts(design: FabricDesign) -> dict[str, int]:
    """Return how many cables the rules have between each two tiers, from the nodes up."""
    wiring = design.fat_tree
    return {
        "nodes and leaves": len(design.node_names()) * design.rails,
        "leaves and spines": len(wiring.leaves.at) * len(wiring.leaf_up_ports) if wiring else 0,
        "spines and cores": len(wiring.spines.at) * len(wiring.spine_up_ports) if wiring else 0,
    }


def _format_place(device: DesignedDevice) -> str:
    return f"{device.rack} U{device.u}"


def plan_cables(before: FleetRevision, after: FleetRevision) -> tuple[FleetRevision, tuple[CablingJob, ...]]:
    """Return the base and the work. Each design of the base that cannot be compiled is as in the head, and named.

    Raises AssayError if a design of the head cannot be compiled.
    """
    try:
        return before, plan_cabling_jobs(before.fleet, after.fleet)
    except AssayError:
        mended = _mend_designs(before, after.fleet)
        if mended is before:
            raise
        return mended, plan_cabling_jobs(mended.fleet, after.fleet)


def _mend_designs(before: FleetRevision, head: Fleet) -> FleetRevision:
    """Return the base with the head's design, and if that is not enough its nodes, for each that is not compiled."""
    fleet, unread = before.fleet, list(before.unread)
    for name, design in before.fleet.designs.items():
        if mistake := _find_mistake(design, fleet):
            fleet = _take_design(fleet, head, name)
            unread.append(
                (mistake.where or f"FabricDesign {name}", f"the cables of {name} cannot be compiled: {mistake.what}")
            )
    return replace(before, fleet=fleet, unread=tuple(unread)) if len(unread) > len(before.unread) else before


def _find_mistake(design: FabricDesign, fleet: Fleet) -> AssayError | None:
    try:
        compile_topology(design, fleet)
    except AssayError as error:
        return error
    return None


def _take_design(fleet: Fleet, head: Fleet, name: str) -> Fleet:
    theirs = head.designs.get(name)
    others = {known: design for known, design in fleet.designs.items() if known != name}
    if theirs is None:
        return replace(fleet, designs=others)
    taken = replace(fleet, designs={**others, name: theirs})
    if _find_mistake(theirs, taken):
        nodes = {node: head.nodes[node] for node in theirs.node_names() if node in head.nodes}
        return replace(taken, nodes={**fleet.nodes, **nodes})
    return taken
