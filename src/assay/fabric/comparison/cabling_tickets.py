"""Discrepancies that one cause explains are one piece of work: a transceiver, a rack without power, a bundle.

What a technician is told to do, in order, and what is likely behind it.

From a comparison to work for a technician.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from assay.fabric.comparison.compare import FabricComparison
from assay.fabric.comparison.device_diagnosis import find_unit_name
from assay.fabric.comparison.discrepancy import CablingDiscrepancy, DiscrepancyKind
from assay.model.fabric.ports_and_cables import Cable, CableEnd
from assay.model.ledger_entry import derive_id
from assay.model.ticket import Ticket, TicketPlace

MIN_RACK_DEVICES, MIN_BUNDLE_SWAPS = 3, 3
"""So many devices of a rack, so many swaps between the same devices, are no coincidence."""


@dataclass(frozen=True, slots=True)
class CablingRepair:
    """What one ticket is about. `cause` names what the members have in common, "" where it is one discrepancy."""

    members: tuple[CablingDiscrepancy, ...]
    cause: str = ""
    title: str = ""
    likely_cause: str = ""

    @property
    def first(self) -> CablingDiscrepancy:
        """The discrepancy, or the first of several."""
        return self.members[0]


def group_by_common_cause(found: Iterable[CablingDiscrepancy]) -> list[CablingRepair]:
    """Return the pieces of work, in the order of the discrepancies that each begins with."""
    every = list(found)
    left, taken = every, list[CablingRepair]()
    for merge in (_racks, _cages, _disabled_ports, _bundles):
        merged = list(merge(left))
        used = {id(one) for work in merged for one in work.members}
        left = [one for one in left if id(one) not in used]
        taken += merged
    order = {id(one): number for number, one in enumerate(every)}
    return sorted([*taken, *(CablingRepair((one,)) for one in left)], key=lambda work: order[id(work.first)])


def _racks(found: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """Several devices of one rack are gone: it has no power."""
    for (site, rack), members in _grouped(found, "device-missing", _own_rack):
        if rack and len(members) >= MIN_RACK_DEVICES:
            names = ", ".join(one.device for one in members)
            yield CablingRepair(
                members, f"rack/{site}/{rack}", f"Rack {rack}: {len(members)} devices not in the fabric",
                f"{names} stand in rack {rack}: its power, or what they have in common there",
            )  # fmt: skip


def _cages(found: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """All cables of a cage are out, or slow: it is the transceiver that they share."""
    for kind in ("missing", "degraded"):
        for (guid, cage), members in _grouped(found, kind, _own_cages):
            if len(members) > 1:
                end = next(end for one in members for end in one.ends if (guid, _cage(end)) == (guid, cage))
                name = f"{end.device} cage {cage}"
                yield CablingRepair(
                    members, f"cage/{guid}/{cage}", f"{'No link' if kind == 'missing' else 'Slow links'}: {name}",
                    f"both links of {name} are {'down' if kind == 'missing' else 'slow'}: the transceiver they share",
                )  # fmt: skip


def _disabled_ports(found: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """Several ports of one node or switch are disabled: somebody did that for one reason."""
    groups = list(_grouped(found, "disabled", lambda one: [(end.node or end.device,) for end in one.ends]))
    done: set[int] = set()
    for (unit,), members in sorted(groups, key=lambda group: -len(group[1])):
        new = tuple(one for one in members if id(one) not in done)
        if len(new) > 1:
            done |= {id(one) for one in new}
            yield CablingRepair(
                new, f"disabled/{unit}", f"Disabled: {len(new)} links of {unit}", "somebody disabled them"
            )


def _bundles(found: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """Several swaps between the same two devices: a bundle of cables went to the wrong one."""
    for devices, members in _grouped(found, "swap", _two_switches):
        if len(members) >= MIN_BUNDLE_SWAPS:
            names = " and ".join(devices)
            yield CablingRepair(
                members, f"bundle/{'/'.join(devices)}", f"Exchanged cables: {len(members)} pairs between {names}",
                f"a bundle of cables of {names} was exchanged",
            )  # fmt: skip


def _grouped(
    found: Sequence[CablingDiscrepancy], kind: str, keys: Callable[[CablingDiscrepancy], Iterable[tuple[str, ...]]]
) -> Iterator[tuple[tuple[str, ...], tuple[CablingDiscrepancy, ...]]]:
    groups: dict[tuple[str, ...], list[CablingDiscrepancy]] = {}
    for one in found:
        if one.kind == kind:
            for key in dict.fromkeys(keys(one)):
                groups.setdefault(key, []).append(one)
    yield from ((key, tuple(members)) for key, members in groups.items())


def _own_rack(one: CablingDiscrepancy) -> list[tuple[str, str]]:
    own = next((end for end in one.ends if one.device in (end.node, end.device)), None)
    return [(own.site, own.rack)] if own else []


def _own_cages(one: CablingDiscrepancy) -> list[tuple[str, str]]:
    return [(end.guid, _cage(end)) for end in one.ends if _cage(end)]


def _cage(end: CableEnd) -> str:
    """Return the cage of a label `17/1`, "" where the label names none."""
    cage, slash, _ = end.label.partition("/")
    return cage if slash and not end.node else ""


def _two_switches(one: CablingDiscrepancy) -> list[tuple[str, ...]]:
    """Return the switches between which cables were exchanged; nothing where it was on one switch."""
    names = sorted({end.device for end in one.ends if not end.node})
    return [tuple(names)] if len(names) in (2, 3) else []


LIKELY_CAUSES: dict[DiscrepancyKind, str] = {
    "swap": "plugs were put into each other's ports",
    "moved": "a plug was put into the wrong port",
    "missing": "the cable is unplugged, not seated, or broken; or a port or transceiver at one end is",
    "disabled": "somebody disabled the port",
    "unexpected": "a cable was laid that nobody wrote into the design, or was left behind",
    "degraded": "a dirty or badly seated plug, or a worn cable: the link fell back to a rate that it can hold",
    "device-missing": "it has no power, does not run, or was taken away",
    "device-unknown": "a device was connected that nobody wrote into the design",
    "device-replaced": "the device, or its adapter, was replaced",
    "device-exchanged": "the devices, or all of their cables, or their entries in the inventory are exchanged",
}


def describe_likely_cause(one: CablingDiscrepancy) -> str:
    """Return the likely cause."""
    said = LIKELY_CAUSES[one.kind]
    if one.likelier_reason:
        said += f"; likelier: {one.corrections[0]}, since {one.likelier_reason}"
    return f"{said}; meanwhile {one.capacity_loss}" if one.capacity_loss else said


def list_repair_steps(members: Sequence[CablingDiscrepancy], design: str, beside: Sequence[str]) -> list[str]:
    """Return what to do, what else goes down first, the likelier way before the other, the proof last."""
    said = ["other links share the cages and go down with the plugs: tell those who use them"] if beside else []
    for one in members:
        said += [*_inspection_steps(one), *one.steps]
    said.append(f"then assay fabric scan {design}: this ticket closes when the scan finds it as designed")
    return list(dict.fromkeys(said))


def _inspection_steps(one: CablingDiscrepancy) -> list[str]:
    """Return what to look at before anything is moved."""
    if one.kind == "swap":
        return ["read the labels of the cables at both ends: they tell which way of the two it was"]
    if one.kind in ("missing", "degraded"):
        cable = one.cables[0].expected
        return [f"look at the port's light and the plug at {cable.a} and at {cable.b}"] if cable else []
    if one.kind == "device-exchanged":
        return ["read serial number and GUID from the label of either device, and compare them with the inventory"]
    return []


TITLES = {
    "swap": "Exchanged cables",
    "moved": "Cable in the wrong port",
    "missing": "No link",
    "disabled": "Disabled port",
    "unexpected": "Cable that is not in the design",
    "degraded": "Slow link",
    "device-missing": "Device not in the fabric",
    "device-unknown": "Device that is not in the design",
    "device-replaced": "Device with a new GUID",
    "device-exchanged": "Devices in each other's place",
}


def make_cabling_tickets(comparison: FabricComparison) -> list[Ticket]:
    """Return one ticket per discrepancy, or per cause of several; none at all from a partial discovery.

    The key says what is wrong and where, never when it was seen, so that the next scan finds the same ticket.
    """
    if comparison.verdict == "partial":
        return []
    return [_ticket(comparison.design, work) for work in group_by_common_cause(comparison.discrepancies)]


def make_cabling_ticket(design: str, one: CablingDiscrepancy) -> Ticket:
    """Return the ticket of one discrepancy. It belongs to a node if that is the only one that it touches."""
    return _ticket(design, CablingRepair((one,)))


def _ticket(design: str, work: CablingRepair) -> Ticket:
    key = _key(design, work)
    members = work.members
    nodes = {node for one in members for node in one.nodes}
    pairs = [pair for one in members for pair in one.cables]
    beside = _links_sharing_transceiver(work)
    said = "\n".join(one.summary for one in members)
    return Ticket(
        id=derive_id("ticket", key),
        key=key,
        title=work.title or _title(work.first),
        node=next(iter(nodes)) if len(nodes) == 1 else "",
        places=tuple(dict.fromkeys(place for one in members for place in _places(one))),
        expected=_lines([pair.expected for pair in pairs]) or "no cable",
        seen=f"{said}\n{_lines([pair.observed for pair in pairs]) or 'no link'}",
        verify=f"fabric scan {design}",
        severity="degraded",
        cause=work.likely_cause or describe_likely_cause(work.first),
        steps="\n".join(list_repair_steps(members, design, beside)),
        beside="\n".join(beside),
    )


def _title(one: CablingDiscrepancy) -> str:
    return f"{TITLES[one.kind]}: {one.device or ' and '.join(_devices(one))}"


def _key(design: str, work: CablingRepair) -> str:
    if work.cause:
        return f"fabric/{design}/{work.cause}"
    one = work.first
    ports = sorted(f"{end.guid}:{end.port}" for end in one.ends)
    what = [one.device] if one.kind in ("device-missing", "device-exchanged") else ports
    return f"fabric/{design}/{one.kind}/{derive_id(*what)}"


def _devices(one: CablingDiscrepancy) -> list[str]:
    """Name the nodes' adapters where there are any, else every device."""
    ends = [end for end in one.ends if end.node] or one.ends
    return list(dict.fromkeys(end.device for end in ends))


def _links_sharing_transceiver(work: CablingRepair) -> list[str]:
    """Return which links go down with the plugs that are pulled, those that the work is about left out."""
    about = {str(end) for one in work.members for end in one.ends}
    said = (
        line for one in work.members for line in one.links_sharing_transceiver if line.partition(": ")[0] not in about
    )
    return list(dict.fromkeys(said))


def _places(one: CablingDiscrepancy) -> tuple[TicketPlace, ...]:
    """Return every end where hands may have to go; for a whole device, the device itself."""
    if one.kind == "device-missing":
        gone = next(end for end in one.ends if find_unit_name(end) == one.device)
        return (TicketPlace(one.device, gone.site, gone.rack, gone.u),)
    if one.kind == "device-exchanged":
        names = one.device.split(" and ")
        own = {find_unit_name(end): end for end in one.ends if find_unit_name(end) in names}
        return tuple(TicketPlace(name, own[name].site, own[name].rack, own[name].u) for name in names if name in own)
    return tuple(_place(end) for end in one.ends)


def _place(end: CableEnd) -> TicketPlace:
    return TicketPlace(end.device, end.site, end.rack, end.u, str(end.port), end.label)


def _lines(cables: list[Cable | None]) -> str:
    return "\n".join(f"{cable.a} – {cable.b} at {cable.rate}" for cable in cables if cable)
