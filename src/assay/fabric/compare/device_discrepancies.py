"""Reports discrepancies of whole devices: dead, unknown, exchanged or replaced. Many cables then have one cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from assay.fabric.compare.absent_devices import AbsenceCause
from assay.fabric.compare.cable_discrepancies import EndResolver, describe_cut_off_devices
from assay.fabric.compare.discrepancy import IN_PLACE_KINDS, CablePair, CablingDiscrepancy
from assay.fabric.compare.new_devices import NewDevices, format_name, format_place, format_unit
from assay.fabric.compare.port_diff import PortDiff
from assay.fabric.compare.residual_diff import DevicePermutation, PortPair
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.tiers_and_shared_transceivers import describe_capacity_loss
from assay.model.specs.fabric.ports_and_cables import Cable, CableEnd

WRITE_NEW = "; write what is new into the design, if it stays"


def find_unit_name(end: CableEnd) -> str:
    """Return the name of what fails as one unit: the node for its adapters, else the device."""
    return end.node or end.device


def report_dead_device(cause: AbsenceCause, resolver: EndResolver, tiers: Mapping[str, int]) -> CablingDiscrepancy:
    """Report a switch or node of which nothing answers, with what is out of reach behind it."""
    pairs = tuple(CablePair(resolver.find_designed_cable(a), None) for a, _ in cause.cables)
    behind = tuple(resolver.find_designed_cable(a) for a, _ in cause.cut_off)
    end = resolver.end(cause.cables[0][0])
    name = find_unit_name(end)
    loss = "" if end.node else describe_capacity_loss(resolver.topology, [cause.unit], tiers)
    facts = (
        f"{name}{format_place(end.rack, end.u)} is not in the fabric: none of its cables has a link",
        loss,
        describe_cut_off_devices(behind) if behind else "",
    )
    summary = "; ".join(fact for fact in facts if fact)
    steps = (f"check that {name} has power and runs, before touching a cable",)
    chip = resolver.topology.devices[end.guid]
    return CablingDiscrepancy(
        "device-missing", pairs, summary, steps, name, cut_off=behind, capacity_loss=loss,
        box=chip.box, module=chip.module, plane=chip.plane,
    )  # fmt: skip


def report_unknown_device(guid: str, cables: Sequence[Cable]) -> CablingDiscrepancy:
    """Report a device that is not in the design, with all of its cables."""
    name = next(end.device for end in cables[0].ends if end.guid == guid)
    far = ", ".join(str(end) for cable in cables for end in cable.ends if end.guid != guid) or "itself"
    summary = f"{name} ({guid}) is not in the design; it is cabled to {far}"
    pairs = tuple(CablePair(None, cable) for cable in cables)
    return CablingDiscrepancy("device-unknown", pairs, summary, ("add it to the design, or remove its cables",), name)


def report_misplaced_devices(
    permutations: Sequence[DevicePermutation],
    explained: Mapping[int, Sequence[PortPair]],
    empty_places: Mapping[int, Sequence[PortPair]],
    resolver: EndResolver,
) -> list[CablingDiscrepancy]:
    """Report devices in each other's place, and new devices in known places; the new adapters of a node together.

    By the index of each permutation, `explained` has its cables, and `empty_places` the cables of the place that its
    first device left. What is new in a place that others left, or in which they stand, is one matter with them.
    """
    found: list[CablingDiscrepancy] = []
    new = NewDevices(permutations, resolver)
    for index, permutation in enumerate(permutations):
        joined = new.list_joined(index)
        pairs = _make_pairs([pair for each in (index, *joined) for pair in explained[each]], resolver)
        facts = [*new.describe_joined(index), *new.describe_renewed(permutation)]
        if permutation.closed:
            found.append(_report_exchanged(permutation, pairs, facts, resolver))
        elif index not in new.indexes:
            left = tuple(CablePair(resolver.find_designed_cable(a), None) for a, _ in empty_places.get(index, ()))
            found.append(_report_moved_in(permutation, pairs, left, facts, resolver, is_filled=bool(joined)))
    for indexes in new.list_alone():
        if pairs := _make_pairs([pair for index in indexes for pair in explained[index]], resolver):
            found.append(_report_replaced(new.map_places(indexes), pairs, resolver))
    return found


def _make_pairs(ports: Iterable[PortPair], resolver: EndResolver) -> tuple[CablePair, ...]:
    """Return the cables of places as designed, and as seen, with the device that stands there under its own name."""
    return tuple(CablePair(resolver.find_designed_cable(a), resolver.find_cable_by_guid(a, b)) for a, b in ports)


def _report_exchanged(
    permutation: DevicePermutation, pairs: tuple[CablePair, ...], new: Sequence[str], resolver: EndResolver
) -> CablingDiscrepancy:
    names = [format_name(unit, resolver) for unit, _ in permutation.moves]
    joined = " and ".join(names)
    move_devices = f"exchange the devices {joined}, or all of their cables" if len(names) == 2 else f"put {joined} back"
    move_devices += WRITE_NEW if new else ""
    change_entries = f"exchange the GUIDs of {joined} in the inventory or the design{WRITE_NEW if new else ''}"
    announced = _find_announced_side(permutation, resolver)
    if announced == "devices":
        corrections = (move_devices, change_entries)
        their = "their GUIDs" if not permutation.renewed else "they"
        reason = f"they announce themselves by the names that {their} have in the design"
    else:
        corrections = (change_entries, move_devices)
        reason = "the names that they announce do not decide it; a label can be read before anything is moved"
        if announced == "places":
            reason = "they announce themselves by the names of the places where they are"
    moved = [
        f"{name} is cabled in the place of {format_unit(place, resolver)}"
        for name, (_, place) in zip(names, permutation.moves, strict=True)
    ]
    moves = "; ".join((*moved, *new))
    how = "in each other's place" if len(names) == 2 else "in each other's places, in a circle"
    return CablingDiscrepancy("device-exchanged", pairs, f"{joined} are {how}: {moves}", corrections, joined, reason)


def report_exchanged_names(
    rounds: Iterable[Sequence[str]],
    topology: CompiledTopology,
    diff: PortDiff,
    others: Sequence[CablingDiscrepancy],
) -> Iterator[CablingDiscrepancy]:
    """Report nodes that announce each other's names, unless others tell already that they are not in their places."""
    told = {node for one in others if one.kind in IN_PLACE_KINDS for node in one.nodes}
    differing = {*diff.expected, *(port for cable in diff.slow for port in cable[:2])}
    for nodes in rounds:
        cables = [cable for node in nodes for cable in topology.cables_of_node(node)]
        pairs = tuple(CablePair(cable, cable) for cable in cables if cable.a.port_id not in differing)
        if told.isdisjoint(nodes) and pairs:
            joined = " and ".join(nodes)
            yield CablingDiscrepancy(
                "device-exchanged", pairs,
                f"{joined} announce each other's names, though the GUIDs and cables of each are as designed",
                (f"exchange the host names of {joined}", f"exchange {joined} in inventory and design, cables included"),
                joined, "only the names are not as designed; serial numbers show which is which",
            )  # fmt: skip


def _find_announced_side(permutation: DevicePermutation, resolver: EndResolver) -> str:
    """Return which names most devices announce: those of their `places`, or those that the `devices` have; else ""."""
    count = Counter[str]()
    for guid, place in permutation.places.items():
        device = resolver.discovery.devices.get(guid)
        own, designed = resolver.topology.devices[resolver.renewed.get(guid, guid)], resolver.topology.devices[place]
        if device and _is_same_name(device.name, designed.name) != _is_same_name(device.name, own.name):
            count["places" if _is_same_name(device.name, designed.name) else "devices"] += 1
    if count["places"] == count["devices"]:
        return ""
    return "places" if count["places"] > count["devices"] else "devices"


def _is_same_name(announced: str, designed: str) -> bool:
    """Return whether an announced name begins with the device's or node's name, whatever adapter it adds."""
    return announced.partition(" ")[0].lower() == designed.partition(" ")[0].lower()


def _report_moved_in(
    permutation: DevicePermutation,
    pairs: tuple[CablePair, ...],
    empty: tuple[CablePair, ...],
    new: Sequence[str],
    resolver: EndResolver,
    *,
    is_filled: bool,
) -> CablingDiscrepancy:
    """Report a unit in the place of one that is gone. `empty` are the cables that the unit left without link.

    Without them, the unit is new, or something new stands in its place, which `is_filled` then.
    """
    facts = [
        f"{format_name(unit, resolver)} is cabled in the place of {format_unit(place, resolver)}"
        for unit, place in permutation.moves
    ]
    first, gone = permutation.moves[0][0], permutation.moves[-1][1]
    name = format_name(gone, resolver)
    facts.append(f"{name} itself is not in the fabric")
    facts += new
    if empty and not is_filled:
        facts.append(f"the place of {format_unit(first, resolver)} is empty")
    is_node = gone not in resolver.topology.devices
    change = "name the nodes in the design as they stand" if is_node else "write the GUIDs as found"
    fix = f"put every device back into its place; or, if {name} was replaced on purpose, {change}"
    fix += WRITE_NEW if new else ""
    return CablingDiscrepancy(
        "device-replaced", (*pairs, *empty), "; ".join(facts), (fix,), name,
        gone=tuple(resolver.topology.cables_of_node(gone)) if is_node else (),
    )  # fmt: skip


def _report_replaced(
    places: Mapping[str, str], pairs: tuple[CablePair, ...], resolver: EndResolver
) -> CablingDiscrepancy:
    """Report one device, or adapters of one node, with GUIDs that the design lacks."""
    designed = list(resolver.topology.devices)  # adapters of a node by rail, as a design lists them
    places = dict(sorted(places.items(), key=lambda found: designed.index(found[1])))
    devices = [resolver.topology.devices[place] for place in places.values()]
    first = devices[0]
    adapters = len(resolver.topology.cables_of_node(first.node)) if first.node else 1
    is_whole_node = len(devices) == adapters > 1
    name = first.node if is_whole_node or len(devices) > 1 else first.name
    where, guids = f"{name}{format_place(first.rack, first.u)}", ", ".join(places)
    if len(devices) > 1:
        own_names = ", ".join(device.name.partition(" ")[2] for device in devices)
        summary = f"{'all adapters' if is_whole_node else own_names} of {where} have new GUIDs: {guids}"
        summary += _tell_other_name(first.node, places, resolver) if is_whole_node else ""
    else:
        summary = f"in the place of {where} ({first.guid}) is a device with the GUID {guids}"
    fix = f"if {name} was replaced on purpose, write {guids} in its place"
    return CablingDiscrepancy("device-replaced", pairs, summary, (fix,), name, box=first.box, module=first.module)


def _tell_other_name(node: str, places: Mapping[str, str], resolver: EndResolver) -> str:
    """Return by what other name than the node's all of the adapters in its place call themselves, "" without one."""
    devices = [resolver.discovery.devices.get(guid) for guid in places]
    named = {device.name.partition(" ")[0] for device in devices if device and " " in device.name}
    if len(named) != 1 or any(_is_same_name(name, node) for name in named):
        return ""
    return f"; they call themselves {named.pop()}: another node may stand there"
