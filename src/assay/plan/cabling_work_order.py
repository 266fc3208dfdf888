"""The cables to move, as a work order. A fabric is compiled cable by cable only where its structure changes.

What of a design's list of single cables counts for a work order.

Adapters that are replaced: other GUIDs at the same rails, on the same cables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal

from assay.fabric.topology.compiled_topology import DesignedDevice
from assay.fabric.topology.design_compiler import compile_topology
from assay.model.fabric.design_cables_and_partitions import ExplicitCable, ExplicitEnd
from assay.model.fabric.fabric_design import FabricDesign
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.plan.cable_moves import CablingJob, CablingJobKind, plan_cable_moves

ListedEnds = tuple[tuple[str, int, str], tuple[str, int, str]]


def describe_listed_cables(design: FabricDesign, fleet: Fleet) -> list[object]:
    """Return what decides which ports the list joins: its ends, and who answers to the names in it."""
    if not design.cables:
        return []
    named = [(name, switch.guid) for name, _, _, switch in design.switches()]
    adapters = [
        (name, fleet.nodes[name].hca_guids) for name in sorted(find_adapter_nodes(design.cables)) if name in fleet.nodes
    ]
    return [sorted(map(_ends, design.cables)), named, adapters]


def find_adapter_nodes(cables: Iterable[ExplicitCable]) -> set[str]:
    """Return whose adapters listed cables may name: `n0001 mlx5_0` is one of n0001."""
    return {end.device.partition(" ")[0] for cable in cables for _, end in cable.ends}


def find_listed_changes(old: FabricDesign, new: FabricDesign) -> Iterator[CablingJob]:
    """Yield listed cables that stay where they are, and are of another rate or length."""
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
    """Return a cable's ends, the same ones whichever way round it is written."""
    one, other = sorted((end.device, end.port, end.guid or "") for _, end in cable.ends)
    return one, other


def _format_end(end: ExplicitEnd) -> str:
    return f"{end.device} port {end.port}"


def find_adapter_replacements(before: Fleet, after: Fleet) -> tuple[list[CablingJob], Fleet]:
    """Return the replacements, and the fleet as it was before but with the new adapters in it.

    A GUID that is known at another place as well is no replacement but a move, which is left for the cables to tell.
    """
    touched = [node for name, node in after.nodes.items() if _differs(before, name, node)]
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
        nodes[node.name] = _with_new_guids(before.nodes[node.name], fresh)
        if fresh and node.name in designs:
            jobs.append(_job(designs[node.name], after, node, fresh))
    return jobs, replace(before, nodes=nodes)


def _differs(before: Fleet, name: str, node: Node) -> bool:
    return name in before.nodes and before.nodes[name].hca_guids != node.hca_guids


def _guids(fleet: Fleet) -> set[str]:
    return {guid for node in fleet.nodes.values() for guid in node.hca_guids}


def _with_new_guids(node: Node, fresh: dict[int, tuple[str, str]]) -> Node:
    guids = tuple(fresh[rail][1] if rail in fresh else guid for rail, guid in enumerate(node.hca_guids))
    return replace(node, hca_guids=guids)


def _job(design: FabricDesign, fleet: Fleet, node: Node, fresh: dict[int, tuple[str, str]]) -> CablingJob:
    steps = (f"{node.name} ({node.rack} U{node.u}): replace", *_steps(design, fleet, node, fresh), "their cables stay")
    return CablingJob(design.name, "device-changes", steps, (node.name,), (node.rack, node.u))


def _steps(design: FabricDesign, fleet: Fleet, node: Node, fresh: dict[int, tuple[str, str]]) -> Iterator[str]:
    names = {hca.rail: hca.name for hca in fleet.spec_of(node.name).hcas}
    for rail, (was, will) in fresh.items():
        label = design.hca_label.format(rail=rail)
        yield f"{names.get(rail, f'rail {rail}')}{f', port {label}' if label else ''}: {was} by {will}"


CABLE_TIERS: tuple[Literal["node_leaf", "leaf_spine", "spine_core"], ...] = ("node_leaf", "leaf_spine", "spine_core")


def plan_cabling_jobs(before: Fleet, after: Fleet) -> tuple[CablingJob, ...]:
    """Return the work that turns the designed cables of one revision into those of the other, rack by rack.

    Raises AssayError for a design that cannot be compiled.
    """
    adapters, known = find_adapter_replacements(before, after)
    jobs = [*adapters]
    for name in sorted({*before.designs, *after.designs}):
        old, new = before.designs.get(name), after.designs.get(name)
        if old is None or new is None:
            jobs += _whole_fabric(before, old, "take-out") if old else _whole_fabric(after, new, "lay") if new else ()
        else:
            jobs += _changed_fabric(known, after, old, new)
    return tuple(sorted(jobs, key=lambda job: (job.fabric, job.place, job.steps)))


def _changed_fabric(before: Fleet, after: Fleet, old: FabricDesign, new: FabricDesign) -> Iterator[CablingJob]:
    if _structure(old, before) != _structure(new, after):
        yield from plan_cable_moves(new.name, compile_topology(old, before), compile_topology(new, after))
    if old != new:
        yield from _moved_switches(before, after, old, new)
        yield from _tier_changes(old, new)
        yield from find_listed_changes(old, new)


def _structure(design: FabricDesign, fleet: Fleet) -> tuple[object, ...]:
    """Return what decides which port is cabled to which."""
    nodes = (fleet.nodes.get(name) for name in design.node_names())
    guids = [node and node.hca_guids for node in nodes]
    rules = [tier.model_dump(exclude={"name", "at"}) for _, tier in design.tiers]
    switches = [(tier, switch.guid) for tier, _, switch in design.list_switch_places()]
    devices = [(device.name, device.guid) for device in design.devices]
    return design.rails, rules, switches, guids, devices, design.overrides, describe_listed_cables(design, fleet)


def _whole_fabric(fleet: Fleet, design: FabricDesign, what: CablingJobKind) -> Iterator[CablingJob]:
    cables = compile_topology(design, fleet).cables
    counts = Counter(cable.a.rack for cable in cables)
    why, done = {"lay": ("a new fabric", "lay")}.get(what, ("the fabric is no longer designed", "take out"))
    steps = [f"rack {rack}: {done} {count} cables" for rack, count in sorted(counts.items())]
    yield CablingJob(design.name, what, (f"{why}: {len(cables)} cables", *steps), tuple(sorted(design.node_names())))


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
    """Yield what is said of every cable of the fabric, or of one tier, at once."""
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
    """Return how many cables the rules have between which tiers, from the nodes up."""
    wiring = design.fat_tree
    return {
        "nodes and leaves": len(design.node_names()) * design.rails,
        "leaves and spines": len(wiring.leaves.at) * len(wiring.leaf_up_ports) if wiring else 0,
        "spines and cores": len(wiring.spines.at) * len(wiring.spine_up_ports) if wiring else 0,
    }


def _format_place(device: DesignedDevice) -> str:
    return f"{device.rack} U{device.u}"
