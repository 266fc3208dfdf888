"""The pages of the fabrics: what differs from the design, drawn, and each switch with what is at its ports."""

from __future__ import annotations

from markupsafe import Markup

from assay.act.loop.snapshot import list_used_designs
from assay.model.specs.fabric.cable import CableEnd
from assay.tell.pages.page_frame import PageRequest, place, render_frame
from assay.tell.views.fabric_view import (
    FaultyCabling,
    SwitchPort,
    find_switch,
    list_faults,
    list_ports,
    summarize_fabric,
)
from assay.tell.views.records import LiveRecords

MAX_FABRICS, MAX_FAULTS = 8, 50
"""So many are drawn; the other faults are counted, and the other fabrics linked."""


def find_address(end: CableEnd) -> str:
    """Return the page of the device at an end of a cable."""
    return place("nodes", end.node) if end.node else place("fabric", end.device)


def list_drawn_faults(
    records: LiveRecords, *, fabric: str = "", node: str = "", ticket: str = ""
) -> list[FaultyCabling]:
    """Return what is wrong with the cables of a node of a fabric, or that a ticket is about."""
    scans = [each.scan for each in records.read_fabrics(fabric) if each.scan]
    return [fault for scan in scans for fault in list_faults(scan, find_address, node, ticket)][:MAX_FAULTS]


def list_node_ports(records: LiveRecords, node: str, fabric: str) -> list[tuple[str, SwitchPort]]:
    """Return the ports of a node's adapters, each with the adapter's name, and what the design wants at it."""
    fabrics = records.read_fabrics(fabric)
    of_node = [(each, device) for each in fabrics for device in each.topology if device.node == node]
    return [(device.name, port) for each, device in of_node for port in list_ports(each, device)]


def render_fabric_page(records: LiveRecords, request: PageRequest) -> str:
    """Return the page of all fabrics; of many, that of one, with links to the others."""
    names = sorted(design.name for design in list_used_designs(records.fleet))
    only = request.query.get("fabric", "") or (names[0] if len(names) > MAX_FABRICS else "")
    fabrics = [summarize_fabric(fabric, find_address) for fabric in records.read_fabrics(only)]
    return render_frame("fabric.html.j2", request, fabrics=fabrics, names=names, most=MAX_FAULTS, drawn=Markup)


def render_switch_page(records: LiveRecords, request: PageRequest) -> str | None:
    """Return the page of a switch, None without one of this name."""
    name, designs = request.path_params["name"], list_used_designs(records.fleet)
    only = next((each.name for each in designs if any(chip.name == name for chip in each.chips())), "")
    located = find_switch(records.read_fabrics(only), name)
    if located is None:
        return None
    fabric, switch = located
    faults = list_faults(fabric.scan, find_address) if fabric.scan else ()
    here = [fault for fault in faults if any(end.guid == switch.guid for end in fault.discrepancy.ends)]
    return render_frame(
        "switch.html.j2",
        request,
        fabric=fabric.topology.name,
        scanned_at=fabric.scan.scanned_at if fabric.scan else "",
        switch=switch,
        ports=list_ports(fabric, switch),
        faults=here[:MAX_FAULTS],
        drawn=Markup,
    )
