"""Reports discrepancies of whole devices: dead, unknown, exchanged or replaced. Many cables then have one cause.

A discovery sees what it can reach. If a switch is off, its cables have no link, and neither do the cables behind it.
The first such switch that answering devices lead to is the cause. What lies behind it is neither healthy nor dead.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from assay.fabric.compare.cable_discrepancies import EndResolver, describe_cut_off_devices
from assay.fabric.compare.device_names import NewDevices, format_name, format_place, format_unit
from assay.fabric.compare.discrepancy import IN_PLACE_KINDS, CablePair, CablingDiscrepancy
from assay.fabric.compare.port_diff import DevicePermutation, PortDiff, PortPair
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.tiers import describe_capacity_loss
from assay.model.specs.fabric.cable import Cable, CableEnd, PortId

Unit = str
WRITE_NEW = "; write what is new into the design, if it stays"


@dataclass
class AbsenceCause:
    """One dead node or switch, or one cable that cuts others off.

    `unit` is the node's name or the switch's GUID, "" for a cable. `cables` are its own, `cut_off` those behind it.
    `disabled`: a port of the cable is disabled.
    """

    unit: Unit
    cables: list[PortPair] = field(default_factory=list)
    cut_off: list[PortPair] = field(default_factory=list)
    disabled: bool = False


@dataclass
class AbsentDevices:
    """The explanation of all cables without link: `causes`, `single` missing cables, and `unreached` ones.

    No designed path leads from an answering device to an unreached cable: the discovery ran in another part.
    """

    causes: list[AbsenceCause]
    single: list[PortPair]
    unreached: list[PortPair]


def explain_absent_devices(
    topology: CompiledTopology, missing: Mapping[PortId, PortId], disabled: Collection[PortId], present: Collection[str]
) -> AbsentDevices:
    """Explain cables without link. `missing` has both ports of each, `present` the GUIDs of devices with any link.

    `disabled` are the ports that somebody disabled, which explains their cables.
    """
    return _AbsenceAnalysis(topology, missing, disabled, present).explain()


class _AbsenceAnalysis:
    def __init__(
        self,
        topology: CompiledTopology,
        missing: Mapping[PortId, PortId],
        disabled: Collection[PortId],
        present: Collection[str],
    ) -> None:
        self.topology = topology
        self.missing = missing
        self.disabled = disabled
        self.present = present
        self.remaining = dict(missing)
        self.owner: dict[str, AbsenceCause] = {}
        devices = {port.guid: topology.devices[port.guid] for port in missing if port.guid not in present}
        self.switches = [guid for guid, device in devices.items() if device.kind != "hca"]
        self.nodes: dict[str, list[str]] = defaultdict(list)
        for guid, device in devices.items():
            if device.kind == "hca":
                self.nodes[device.node or guid].append(guid)

    def explain(self) -> AbsentDevices:
        off = [port for port in self.missing if port in self.disabled]
        disabled = [AbsenceCause("", [self._take_cable(port)], disabled=True) for port in off if port in self.remaining]
        dead = self._find_dead_units()
        for cause in dead:
            self.owner |= dict.fromkeys(self.nodes.get(cause.unit, [cause.unit]), cause)
        for cause in disabled:
            for port in cause.cables[0]:
                if port.guid not in self.present:
                    self.owner.setdefault(port.guid, cause)
        causes = [*disabled, *dead, *self._find_only_links()]
        self._assign_owners()
        single = [edge for edge in self._list_remaining_cables() if not self._assign_cut_off(edge)]
        unreached = self._find_unreached(single)
        return AbsentDevices(causes, [edge for edge in single if edge not in unreached], [*unreached])

    def _find_dead_units(self) -> list[AbsenceCause]:
        """Return the absent switches, those with most cables first, then the nodes without an answering adapter.

        Each has at least two cables to present devices. A cable between two of them is that of the first.
        """
        dead = [guid for guid in self.switches if len(self._list_ports_to_present([guid])) > 1]
        dead.sort(key=lambda guid: (-len(self.topology.rows[guid[2:]]), guid))
        causes = [AbsenceCause(guid, self._take_cables_of(guid)) for guid in dead]
        some = {node for node, guids in self.nodes.items() if len(self._list_ports_to_present(guids)) > 1}
        answering = {d.node for guid, d in self.topology.devices.items() if d.node in some and guid in self.present}
        for node, guids in self.nodes.items():
            if node in some - answering:
                causes.append(AbsenceCause(node, [edge for guid in guids for edge in self._take_cables_of(guid)]))
        return causes

    def _find_only_links(self) -> list[AbsenceCause]:
        """Return the cables that are the only link to an absent switch and to the devices behind it."""
        causes = []
        for guid in self.switches:
            links = [] if guid in self.owner else self._list_ports_to_present([guid])
            if links and any(port in self.remaining and port not in links for port in self._list_ports(guid)):
                self.owner[guid] = cause = AbsenceCause("", [self._take_cable(links[0])])
                causes.append(cause)
        return causes

    def _assign_owners(self) -> None:
        """Assign every device behind a cause to the nearest cause."""
        front = [guid for guid in self.owner if self.topology.devices[guid].kind != "hca"]
        while front:
            reached = []
            for guid in front:
                for port in self._list_ports(guid):
                    far = self.missing.get(port)
                    if far and far.guid not in self.present and far.guid not in self.owner:
                        self.owner[far.guid] = self.owner[guid]
                        reached.append(far.guid)
            front = [guid for guid in reached if self.topology.devices[guid].kind != "hca"]

    def _assign_cut_off(self, edge: PortPair) -> bool:
        """Add a cable between two absent devices to the cause that cuts it off. Return whether there is one."""
        a, b = edge
        if a.guid in self.present or b.guid in self.present:
            return False
        switches = [port.guid for port in edge if self.topology.devices[port.guid].kind != "hca"]
        cause = next((self.owner[guid] for guid in switches if guid in self.owner), None)
        if cause:
            cause.cut_off.append(edge)
        return cause is not None

    def _find_unreached(self, edges: list[PortPair]) -> dict[PortPair, None]:
        """Return the cables that no designed path joins to a present device."""
        if not any(a.guid not in self.present and b.guid not in self.present for a, b in edges):
            return {}
        joined = set(self.present)
        front = [guid for guid in joined if guid[2:] in self.topology.rows]
        while front:
            far = {f"0x{row[1]}" for guid in front for row in self.topology.rows[guid[2:]]} - joined
            joined |= far
            front = list(far)
        return dict.fromkeys((a, b) for a, b in edges if a.guid not in joined)

    def _list_ports_to_present(self, guids: list[str]) -> list[PortId]:
        """Return the ports whose unexplained cable leads to a present device."""
        ports = (port for guid in guids for port in self._list_ports(guid))
        return [port for port in ports if port in self.remaining and self.remaining[port].guid in self.present]

    def _list_ports(self, guid: str) -> list[PortId]:
        return [PortId(guid, int(row[0])) for row in self.topology.rows[guid[2:]]]

    def _take_cables_of(self, guid: str) -> list[PortPair]:
        return [self._take_cable(port) for port in self._list_ports(guid) if port in self.remaining]

    def _take_cable(self, port: PortId) -> PortPair:
        far = self.remaining.pop(port)
        self.remaining.pop(far, None)
        return port, far

    def _list_remaining_cables(self) -> list[PortPair]:
        """Return the cables that no cause explains yet, each once."""
        once: dict[frozenset[PortId], PortPair] = {}
        for edge in self.remaining.items():
            once.setdefault(frozenset(edge), edge)
        return list(once.values())


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
        "device-missing",
        pairs,
        summary,
        steps,
        name,
        cut_off=behind,
        capacity_loss=loss,
        box=chip.box,
        module=chip.module,
        plane=chip.plane,
    )


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
    discrepancies: list[CablingDiscrepancy] = []
    new = NewDevices(permutations, resolver)
    for index, permutation in enumerate(permutations):
        joined = new.list_joined(index)
        pairs = _make_pairs([pair for each in (index, *joined) for pair in explained[each]], resolver)
        facts = [*new.describe_joined(index), *new.describe_renewed(permutation)]
        if permutation.closed:
            discrepancies.append(_report_exchanged(permutation, pairs, facts, resolver))
        elif index not in new.indexes:
            left = tuple(CablePair(resolver.find_designed_cable(a), None) for a, _ in empty_places.get(index, ()))
            discrepancies.append(_report_moved_in(permutation, pairs, left, facts, resolver, is_filled=bool(joined)))
    for indexes in new.list_alone():
        if pairs := _make_pairs([pair for index in indexes for pair in explained[index]], resolver):
            discrepancies.append(_report_replaced(new.map_places(indexes), pairs, resolver))
    return discrepancies


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
    misplaced = {node for discrepancy in others if discrepancy.kind in IN_PLACE_KINDS for node in discrepancy.nodes}
    differing = {*diff.expected, *(port for cable in diff.slow for port in cable[:2])}
    for nodes in rounds:
        cables = [cable for node in nodes for cable in topology.cables_of_node(node)]
        pairs = tuple(CablePair(cable, cable) for cable in cables if cable.a.port_id not in differing)
        if misplaced.isdisjoint(nodes) and pairs:
            joined = " and ".join(nodes)
            yield CablingDiscrepancy(
                "device-exchanged",
                pairs,
                f"{joined} announce each other's names, though the GUIDs and cables of each are as designed",
                (f"exchange the host names of {joined}", f"exchange {joined} in inventory and design, cables included"),
                joined,
                "only the names are not as designed; serial numbers show which is which",
            )


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
        "device-replaced",
        (*pairs, *empty),
        "; ".join(facts),
        (fix,),
        name,
        gone=tuple(resolver.topology.cables_of_node(gone)) if is_node else (),
    )


def _report_replaced(
    places: Mapping[str, str], pairs: tuple[CablePair, ...], resolver: EndResolver
) -> CablingDiscrepancy:
    """Report one device, or adapters of one node, with GUIDs that the design lacks."""
    designed = list(resolver.topology.devices)  # adapters of a node by rail, as a design lists them
    places = dict(sorted(places.items(), key=lambda guid_and_place: designed.index(guid_and_place[1])))
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
    update = f"`assay discover update {first.node or name}` drafts the lines: merge them"
    fix = f"if {name} was replaced on purpose, write {guids} in its place; {update}"
    return CablingDiscrepancy("device-replaced", pairs, summary, (fix,), name, box=first.box, module=first.module)


def _tell_other_name(node: str, places: Mapping[str, str], resolver: EndResolver) -> str:
    """Return by what other name than the node's all of the adapters in its place call themselves, "" without one."""
    devices = [resolver.discovery.devices.get(guid) for guid in places]
    named = {device.name.partition(" ")[0] for device in devices if device and " " in device.name}
    if len(named) != 1 or any(_is_same_name(name, node) for name in named):
        return ""
    return f"; they call themselves {named.pop()}: another node may stand there"
