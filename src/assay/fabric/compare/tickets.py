"""Makes tickets for technicians from a fabric comparison: what is wrong and where, the likely cause, the steps.

Discrepancies with one common cause share a ticket: a transceiver, a rack without power, a bundle of cables.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.fabric.compare.common_causes import group_by_common_cause
from assay.fabric.compare.compare import FabricComparison
from assay.fabric.compare.device_discrepancies import find_unit_name
from assay.fabric.compare.discrepancy import CablingDiscrepancy, DiscrepancyKind
from assay.fabric.compare.repair import CablingRepair, measure_cost
from assay.fabric.compare.shared_plugs import drop_other_planes
from assay.model.ledger_entry import derive_id
from assay.model.specs.fabric.cable import Cable
from assay.model.ticket import Ticket, TicketPlace

ORDERS: dict[DiscrepancyKind, str] = {
    "swap": "Exchange the plugs back",
    "moved": "Move the plug to its port",
    "missing": "Reseat or replace the cable",
    "disabled": "Enable the port",
    "unexpected": "Remove the cable, or add it to the design",
    "degraded": "Clean, reseat or replace the cable",
    "device-missing": "Find the device and check its power",
    "device-unknown": "Remove the device, or add it to the design",
    "device-replaced": "Confirm the new device in the design",
    "device-exchanged": "Put the devices back into their places",
}
SHARED_ORDERS: dict[DiscrepancyKind, str] = dict.fromkeys(("missing", "degraded"), "Mend what these links share")
LIKELY_CAUSES: dict[DiscrepancyKind, str] = {
    "swap": "plugs were put into each other's ports",
    "moved": "a plug was put into the wrong port",
    "missing": "the cable is unplugged, not seated, or broken; or a port or transceiver at one end is",
    "disabled": "somebody disabled the port",
    "unexpected": "a cable was added that is not in the design, or was left behind",
    "degraded": "a dirty or badly seated plug, or a worn cable: the link fell back to a rate that it can hold",
    "device-missing": "it has no power, does not run, or was removed",
    "device-unknown": "a device was connected that is not in the design",
    "device-replaced": "the device, or its adapter, was replaced",
    "device-exchanged": "the devices, all of their cables, their names or their entries in the inventory are exchanged",
}


def make_cabling_tickets(comparison: FabricComparison) -> list[Ticket]:
    """Return one ticket per discrepancy, or per common cause of several.

    A ticket belongs to a node if its discrepancies affect no other. Its key names what is wrong and where, not when it
    was seen, so that the next scan finds the same ticket.
    """
    return [_make_ticket(comparison.design, repair) for repair in group_by_common_cause(comparison.discrepancies)]


def _make_ticket(design: str, repair: CablingRepair) -> Ticket:
    key = _make_key(design, repair)
    members, first = repair.members, repair.first
    cost = measure_cost(members)
    nodes = {node for member in members for node in member.nodes}
    pairs = [pair for member in members for pair in member.cables]
    ends = [end for end in first.ends if end.node] or first.ends
    devices = first.device or " and ".join(dict.fromkeys(end.device for end in ends))
    order = (SHARED_ORDERS if repair.title else {}).get(first.kind, ORDERS[first.kind])
    own = {str(end) for member in members for end in member.ends}
    beside = dict.fromkeys(line for member in members for line in member.links_sharing_transceiver)
    sharing = [line for line in beside if line.partition(": ")[0] not in own]
    summary = "\n".join(member.summary for member in members)
    return Ticket(
        id=derive_id("ticket", key),
        key=key,
        title=f"{order}: {repair.title.replace(': ', ', ') or devices}",
        node=next(iter(nodes)) if len(nodes) == 1 else "",
        places=tuple(dict.fromkeys(place for member in members for place in _list_places(member))),
        expected=_format_cables([pair.expected for pair in pairs]) or "no cable",
        seen=f"{summary}\n{_format_cables([pair.observed for pair in pairs]) or 'no link'}",
        verify=f"fabric scan {design}",
        severity=cost.severity,
        cause=f"{repair.likely_cause or describe_likely_cause(first)}; {cost}",
        steps="\n".join(list_repair_steps(members, design, sharing)),
        beside="\n".join(sharing),
    )


def _make_key(design: str, repair: CablingRepair) -> str:
    if repair.cause:
        return f"fabric/{design}/{repair.cause}"
    first = repair.first
    ports = sorted(f"{end.guid}:{end.port}" for end in first.ends)
    place = [first.device] if first.kind in ("device-missing", "device-exchanged") else ports
    return f"fabric/{design}/{first.kind}/{derive_id(*place)}"


def _list_places(discrepancy: CablingDiscrepancy) -> tuple[TicketPlace, ...]:
    """Return every place where a technician may have to go: the ends of cables; for whole devices, the devices."""
    if discrepancy.kind == "device-missing":
        names = [discrepancy.device]
    elif discrepancy.kind == "device-exchanged":
        names = discrepancy.device.split(" and ")
    else:
        return tuple(
            TicketPlace(end.device, end.site, end.rack, end.u, str(end.port), end.label) for end in discrepancy.ends
        )
    end_of = {name: end for end in reversed(discrepancy.ends) for name in (end.device, find_unit_name(end))}
    return tuple(
        TicketPlace(name, end_of[name].site, end_of[name].rack, end_of[name].u) for name in names if name in end_of
    )


def _format_cables(cables: list[Cable | None]) -> str:
    return "\n".join(f"{cable.a} – {cable.b} at {cable.rate}" for cable in cables if cable)


def describe_likely_cause(discrepancy: CablingDiscrepancy) -> str:
    """Return the likely cause, with the likelier correction and the capacity lost meanwhile, if any."""
    cause = LIKELY_CAUSES[discrepancy.kind]
    if discrepancy.likelier_reason:
        cause += f"; likelier: {discrepancy.corrections[0]}, since {discrepancy.likelier_reason}"
    return f"{cause}; meanwhile {discrepancy.capacity_loss}" if discrepancy.capacity_loss else cause


def list_repair_steps(
    members: Sequence[CablingDiscrepancy], design: str, links_sharing_transceiver: Sequence[str]
) -> list[str]:
    """Return the steps of a repair: warn, inspect, correct (the likelier way first), and verify."""
    steps = []
    if links_sharing_transceiver:
        steps.append("other links share the cages and go down with the plugs: warn their users")
    for member in drop_other_planes(members):
        steps += [*_list_inspection_steps(member), *member.steps]
    steps.append(f"then assay fabric scan {design}: this ticket closes when the scan finds it as designed")
    return list(dict.fromkeys(steps))


def _list_inspection_steps(discrepancy: CablingDiscrepancy) -> list[str]:
    """Return what to inspect before anything is moved."""
    if discrepancy.kind == "swap":
        return ["read the labels of the cables at both ends: they show which of the two it was"]
    if discrepancy.kind in ("missing", "degraded") and not discrepancy.box:
        cable = discrepancy.cables[0].expected
        return [f"look at the port's light and the plug at {cable.a} and at {cable.b}"] if cable else []
    if discrepancy.kind == "device-exchanged":
        return ["read serial number and GUID from the label of either device, and compare them with the inventory"]
    return []
