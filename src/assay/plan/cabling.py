"""The cables to move, as a work order. A fabric is compiled cable by cable only where its structure changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal

from assay.fabric.design import Device, plan
from assay.model.design import FabricDesign
from assay.model.fleet import Fleet
from assay.plan import listed
from assay.plan.adapters import with_new_adapters
from assay.plan.job import Job, What
from assay.plan.recabling import recabling

TIERS: tuple[Literal["node_leaf", "leaf_spine", "spine_core"], ...] = ("node_leaf", "leaf_spine", "spine_core")


def cabling(before: Fleet, after: Fleet) -> tuple[Job, ...]:
    """Return the work that turns the designed cables of one revision into those of the other, rack by rack.

    Raises Trouble for a design that cannot be compiled.
    """
    adapters, known = with_new_adapters(before, after)
    jobs = [*adapters]
    for name in sorted({*before.designs, *after.designs}):
        old, new = before.designs.get(name), after.designs.get(name)
        if old is None or new is None:
            jobs += _whole(before, old, "take-out") if old else _whole(after, new, "lay") if new else ()
        else:
            jobs += _changed(known, after, old, new)
    return tuple(sorted(jobs, key=lambda job: (job.fabric, job.place, job.steps)))


def _changed(before: Fleet, after: Fleet, old: FabricDesign, new: FabricDesign) -> Iterator[Job]:
    if _structure(old, before) != _structure(new, after):
        yield from recabling(new.name, plan(old, before), plan(new, after))
    if old != new:
        yield from _moved_switches(before, after, old, new)
        yield from _all_cables(old, new)
        yield from listed.changed(old, new)


def _structure(design: FabricDesign, fleet: Fleet) -> tuple[object, ...]:
    """Return what decides which port is cabled to which."""
    nodes = (fleet.nodes.get(name) for name in design.node_names())
    guids = [node and node.hca_guids for node in nodes]
    rules = [tier.model_dump(exclude={"name", "at"}) for _, tier in design.tiers]
    switches = [(tier, switch.guid) for tier, _, switch in design.places()]
    devices = [(device.name, device.guid) for device in design.devices]
    return design.rails, rules, switches, guids, devices, design.overrides, listed.structure(design, fleet)


def _whole(fleet: Fleet, design: FabricDesign, what: What) -> Iterator[Job]:
    cables = plan(design, fleet).cables
    counts = Counter(cable.a.rack for cable in cables)
    why, done = {"lay": ("a new fabric", "lay")}.get(what, ("the fabric is no longer designed", "take out"))
    steps = [f"rack {rack}: {done} {count} cables" for rack, count in sorted(counts.items())]
    yield Job(design.name, what, (f"{why}: {len(cables)} cables", *steps), tuple(sorted(design.node_names())))


def _moved_switches(before: Fleet, after: Fleet, old: FabricDesign, new: FabricDesign) -> Iterator[Job]:
    was = {switch.guid: (switch.rack, switch.u) for _, _, switch in old.places()}
    moved = {
        switch.guid
        for _, _, switch in new.places()
        if was.get(switch.guid, (switch.rack, switch.u)) != (switch.rack, switch.u)
    }
    if not moved:
        return
    there, here = plan(new, after), plan(old, before).devices
    for guid in moved:
        cables = there.of_device(guid)
        nodes = {end.node for cable in cables for end in cable.ends} - {""}
        device = there.devices[guid]
        step = f"move the switch {device.name} from {_place(here[guid])} to {_place(device)}"
        steps = (step, f"its {len(cables)} cables go with it")
        yield Job(new.name, "device-moves", steps, tuple(sorted(nodes)), (here[guid].rack, here[guid].u))


def _all_cables(old: FabricDesign, new: FabricDesign) -> Iterator[Job]:
    """Yield what is said of every cable of the fabric, or of one tier, at once."""
    nodes = tuple(sorted(new.node_names()))
    counts = _counts(new)
    if old.rate != new.rate:
        yield Job(new.name, "rate", (f"all {sum(counts.values())} cables: {old.rate} → {new.rate}",), nodes)
    for tier, (count, named) in zip(TIERS, zip(counts.values(), counts, strict=True), strict=True):
        touched = nodes if tier == "node_leaf" else ()
        was, will = getattr(old.lengths, tier), getattr(new.lengths, tier)
        if was != will and count:
            step = f"{count} cables between {named}: {was:g} m → {will:g} m"
            yield Job(new.name, "length", (step,), touched)
        if old.rate == new.rate and old.rate_of(tier) != new.rate_of(tier) and count:
            step = f"{count} cables between {named}: {old.rate_of(tier)} → {new.rate_of(tier)}"
            yield Job(new.name, "rate", (step,), touched)


def _counts(design: FabricDesign) -> dict[str, int]:
    """Return how many cables the rules have between which tiers, from the nodes up."""
    wiring = design.wiring
    return {
        "nodes and leaves": len(design.node_names()) * design.rails,
        "leaves and spines": len(wiring.leaves.at) * len(wiring.up) if wiring else 0,
        "spines and cores": len(wiring.spines.at) * len(wiring.spine_up) if wiring else 0,
    }


def _place(device: Device) -> str:
    return f"{device.rack} U{device.u}"
