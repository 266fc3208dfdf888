"""The cables to move, as a work order. A fabric is compiled cable by cable only if its structure changes.

A base with cables that cannot be compiled must not block their repair: it takes the design of the head.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import Literal

from assay.decide.plan.cable_moves import (
    CablingJob,
    CablingJobKind,
    find_adapter_nodes,
    find_adapter_replacements,
    plan_cable_moves,
)
from assay.decide.plan.inputs import FleetRevision
from assay.fabric.design.compiler import compile_topology
from assay.fabric.design.devices import DesignedDevice
from assay.fabric.design.node_cables import digest_node_cables
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.specs.fabric.design_parts import ExplicitCable, ExplicitEnd
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.specs.fabric.nvlink_domain import NvlinkDomain

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
        yield from plan_cable_moves(new.name, compile_topology(old, before), compile_topology(new, after))
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
