"""The cables to move, as a work order. A fabric is compiled cable by cable only where its structure changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from assay.fabric.design import Device, plan
from assay.model.design import FabricDesign, span
from assay.model.fleet import Fleet
from assay.plan import listed
from assay.plan.adapters import with_new_adapters
from assay.plan.job import Job, What
from assay.plan.recabling import recabling


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
    leaves, spines = design.leaves, design.spines
    switches = [switch.guid for switch in (*leaves.at, *spines.at)]
    rules = design.rails, leaves.down, leaves.up, spines.per_pair, len(spines.at)
    return *rules, switches, guids, listed.structure(design, fleet)


def _whole(fleet: Fleet, design: FabricDesign, what: What) -> Iterator[Job]:
    cables = plan(design, fleet).cables
    counts = Counter(cable.a.rack for cable in cables)
    why, done = {"lay": ("a new fabric", "lay")}.get(what, ("the fabric is no longer designed", "take out"))
    steps = [f"rack {rack}: {done} {count} cables" for rack, count in sorted(counts.items())]
    yield Job(design.name, what, (f"{why}: {len(cables)} cables", *steps), tuple(sorted(design.node_names())))


def _moved_switches(before: Fleet, after: Fleet, old: FabricDesign, new: FabricDesign) -> Iterator[Job]:
    was = {switch.guid: (switch.rack, switch.u) for switch in (*old.leaves.at, *old.spines.at)}
    moved = {
        switch.guid
        for switch in (*new.leaves.at, *new.spines.at)
        if was.get(switch.guid, (switch.rack, switch.u)) != (switch.rack, switch.u)
    }
    if not moved:
        return
    there, here = plan(new, after), plan(old, before).devices
    for guid in moved:
        cables = [cable for cable in there.cables if guid in (cable.a.guid, cable.b.guid)]
        nodes = {end.node for cable in cables for end in cable.ends} - {""}
        device = there.devices[guid]
        step = f"move the switch {device.name} from {_place(here[guid])} to {_place(device)}"
        steps = (step, f"its {len(cables)} cables go with it")
        yield Job(new.name, "device-moves", steps, tuple(sorted(nodes)), (here[guid].rack, here[guid].u))


def _all_cables(old: FabricDesign, new: FabricDesign) -> Iterator[Job]:
    """Yield what is said of every cable of the fabric, or of one tier, at once."""
    nodes = tuple(sorted(new.node_names()))
    low = len(nodes) * new.rails
    high = len(new.leaves.at) * len(span(new.leaves.up))
    if old.rate != new.rate:
        yield Job(new.name, "rate", (f"all {low + high} cables: {old.rate} → {new.rate}",), nodes)
    was, will = old.lengths, new.lengths
    if was.node_leaf != will.node_leaf:
        step = f"{low} cables between nodes and leaves: {was.node_leaf:g} m → {will.node_leaf:g} m"
        yield Job(new.name, "length", (step,), nodes)
    if was.leaf_spine != will.leaf_spine:
        step = f"{high} cables between leaves and spines: {was.leaf_spine:g} m → {will.leaf_spine:g} m"
        yield Job(new.name, "length", (step,), ())


def _place(device: Device) -> str:
    return f"{device.rack} U{device.u}"
