"""Many cables, one cause: a dead switch, a node in another's place, are one thing to repair, not sixty-four."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from assay.fabric.comparison.absent_devices import AbsenceCause
from assay.fabric.comparison.cable_diagnosis import EndResolver, describe_cut_off_devices
from assay.fabric.comparison.device_identity import DevicePermutation, PortPair
from assay.fabric.comparison.discrepancy import CablePair, CablingDiscrepancy
from assay.fabric.topology.blast_radius import describe_capacity_loss
from assay.model.fabric.ports_and_cables import Cable, CableEnd


def find_unit_name(end: CableEnd) -> str:
    """Return what fails as one thing: the node for its adapters, else the device."""
    return end.node or end.device


def report_dead_device(cause: AbsenceCause, look: EndResolver, level: Mapping[str, int]) -> CablingDiscrepancy:
    """Name a switch or node of which nothing answers, and what is out of reach behind it."""
    pairs = tuple(CablePair(look.find_designed_cable(a), None) for a, _ in cause.cables)
    behind = tuple(look.find_designed_cable(a) for a, _ in cause.cut_off)
    end = look.end(cause.cables[0][0])
    name = find_unit_name(end)
    said = f"{name}{_place(end)} is not in the fabric: all of its cables are without link"
    lost = "" if end.node else describe_capacity_loss(look.plan, cause.unit, level)
    for more in (lost, describe_cut_off_devices(behind) if behind else ""):
        said += f"; {more}" if more else ""
    steps = (f"look whether {name} has power and runs, before touching a cable",)
    return CablingDiscrepancy("device-missing", pairs, said, steps, name, cut_off=behind, capacity_loss=lost)


def report_unknown_device(guid: str, cables: Sequence[Cable]) -> CablingDiscrepancy:
    """Name a device that is not in the design, with all of its cables."""
    name = next(end.device for end in cables[0].ends if end.guid == guid)
    at = ", ".join(str(end) for cable in cables for end in cable.ends if end.guid != guid) or "itself"
    said = f"{name} ({guid}) is not in the design; it is cabled to {at}"
    steps = ("add it to the design, or take its cables out",)
    return CablingDiscrepancy("device-unknown", tuple(CablePair(None, cable) for cable in cables), said, steps, name)


def report_misplaced_devices(
    rounds: Sequence[DevicePermutation],
    explained: Mapping[int, Sequence[PortPair]],
    empty: Mapping[int, Sequence[PortPair]],
    look: EndResolver,
) -> list[CablingDiscrepancy]:
    """Name boxes in each other's place, and new ones in known places; a node's new adapters together.

    `explained` are the cables of each round by its number, `empty` those of the place that its first box left.
    """
    found: list[CablingDiscrepancy] = []
    new: dict[str, list[int]] = defaultdict(list)
    for number, one in enumerate(rounds):
        if one.closed:
            found.append(_exchanged(one, _pairs(explained[number], look), look))
        elif len(one.moves) > 1 or one.moves[0][0] in look.plan.devices or number in empty:
            left = [CablePair(look.find_designed_cable(a), None) for a, _ in empty.get(number, ())]
            found.append(_moved_in(one, (*_pairs(explained[number], look), *left), look))
        else:
            place = one.moves[0][1]
            new[look.plan.devices[place].node or place].append(number)
    for numbers in new.values():
        places = {box: place for number in numbers for box, place in rounds[number].places.items()}
        pairs = _pairs([edge for number in numbers for edge in explained[number]], look)
        found.append(_replaced(places, pairs, look))
    return found


def _pairs(edges: Iterable[PortPair], look: EndResolver) -> tuple[CablePair, ...]:
    """Return the cables of places as designed, and as seen with the box that stands there under its own name."""
    return tuple(CablePair(look.find_designed_cable(a), look.find_cable_by_guid(a, b)) for a, b in edges)


def _exchanged(one: DevicePermutation, pairs: tuple[CablePair, ...], look: EndResolver) -> CablingDiscrepancy:
    names = [_name(unit, look) for unit, _ in one.moves]
    places = [_where(place, look) for _, place in one.moves]
    said = "; ".join(f"{name} is cabled in the place of {there}" for name, there in zip(names, places, strict=True))
    joined = " and ".join(names)
    many = "each other's place" if len(names) == 2 else "a round of each other's places"
    boxes = f"exchange the devices {joined}, or all of their cables" if len(names) == 2 else f"put {joined} back"
    entries = f"exchange the GUIDs of {joined} in the inventory or the design"
    corrections, because = (boxes, entries), ""
    spoken = _announced_side(one, look)
    if spoken == "places":
        corrections = (entries, boxes)
        because = "they announce themselves by the names of the places where they are"
    elif spoken == "boxes":
        because = "they announce themselves by the names that their GUIDs have in the design"
    else:
        corrections = (entries, boxes)
        because = "what they announce tells nothing; a label can be read before anything is moved"
    said = f"{joined} are in {many}: {said}"
    return CablingDiscrepancy("device-exchanged", pairs, said, corrections, joined, because)


def _announced_side(one: DevicePermutation, look: EndResolver) -> str:
    """Say whether the boxes announce the names of their `places`, those of the `boxes` that their GUIDs are, or ""."""
    said = {"places": 0, "boxes": 0}
    for box, place in one.places.items():
        device = look.discovery.devices.get(box)
        own, there = look.plan.devices[box], look.plan.devices[place]
        if device and _same(device.name, there.name) != _same(device.name, own.name):
            said["places" if _same(device.name, there.name) else "boxes"] += 1
    if said["places"] == said["boxes"]:
        return ""
    return "places" if said["places"] > said["boxes"] else "boxes"


def _same(announced: str, designed: str) -> bool:
    """Say whether a description begins with the device's or the node's name, whatever adapter it adds."""
    return announced.partition(" ")[0].lower() == designed.partition(" ")[0].lower()


def _moved_in(one: DevicePermutation, pairs: tuple[CablePair, ...], look: EndResolver) -> CablingDiscrepancy:
    """Name a device in the place of one that is gone; its own place is empty."""
    said = [f"{_name(box, look)} is cabled in the place of {_where(place, look)}" for box, place in one.moves]
    gone, first = one.moves[-1][1], one.moves[0][0]
    said.append(f"{_name(gone, look)} itself is not in the fabric")
    if first not in look.discovery.devices or first in look.plan.devices:
        said.append(f"the place of {_where(first, look)} is empty")
    name = _name(gone, look)
    fix = f"put every device back into its place; or, if {name} was replaced on purpose, write the GUIDs as they stand"
    return CablingDiscrepancy("device-replaced", pairs, "; ".join(said), (fix,), name)


def _replaced(places: Mapping[str, str], pairs: tuple[CablePair, ...], look: EndResolver) -> CablingDiscrepancy:
    """Name one device, or all adapters of one node, with a GUID that the design does not know."""
    devices = [look.plan.devices[place] for place in places.values()]
    first = devices[0]
    adapters = len(look.plan.cables_of_node(first.node)) if first.node else 1
    whole = len(devices) == adapters > 1
    name = first.node if whole or len(devices) > 1 else first.name
    news = ", ".join(places)
    if len(devices) > 1:
        which = "all adapters" if whole else ", ".join(device.name.partition(" ")[2] for device in devices)
        said = f"{which} of {name}{_at(first.rack, first.u)} have new GUIDs: {news}"
    else:
        said = f"in the place of {name}{_at(first.rack, first.u)} ({first.guid}) is a device with the GUID {news}"
    fix = f"if {name} was replaced on purpose, write {news} in its place"
    return CablingDiscrepancy("device-replaced", pairs, said, (fix,), name)


def _name(unit: str, look: EndResolver) -> str:
    known = look.plan.devices.get(unit)
    found = look.discovery.devices.get(unit)
    return known.name if known else f"{found.name} ({unit})" if found else unit


def _where(place: str, look: EndResolver) -> str:
    """Return a unit's name with its rack and U."""
    devices = look.plan.devices
    known = devices.get(place) or next(device for device in devices.values() if device.node == place)
    return f"{known.node or known.name}{_at(known.rack, known.u)}"


def _place(end: CableEnd) -> str:
    return _at(end.rack, end.u)


def _at(rack: str, u: int) -> str:
    return f" ({rack} U{u})" if rack else ""
