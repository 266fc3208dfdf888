"""The fabrics as they were scanned last: what differs from the design, and each switch with what is at its ports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal

from assay.act.loop.snapshot import ScannedFabricComparison
from assay.fabric.compare.common_causes import group_by_common_cause
from assay.fabric.compare.discrepancy import CablingDiscrepancy
from assay.fabric.compare.tickets import make_cabling_tickets
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.devices import DesignedDevice
from assay.fabric.fault_drawing import FindAddress, draw_discrepancy
from assay.model.facts import frozen
from assay.model.specs.fabric.cable import CableEnd, PortId

PortState = Literal["right", "wrong", "unknown", "spare"]


@frozen
class ScannedFabric:
    """A designed fabric and its last scan, None if nobody has scanned it."""

    topology: CompiledTopology
    scan: ScannedFabricComparison | None

    @property
    def wrong_ports(self) -> set[PortId]:
        """The ports at which something is wrong."""
        discrepancies = self.scan.comparison.discrepancies if self.scan else ()
        return {end.port_id for discrepancy in discrepancies for end in discrepancy.ends}


@frozen
class FaultyCabling:
    """One thing that is wrong, its picture (SVG), and the id of its ticket; "" where the scan was partial."""

    discrepancy: CablingDiscrepancy
    drawing: str
    ticket: str


@frozen
class SwitchSummary:
    """One switch of the design: its place, its designed cables, and how many of them are wrong."""

    name: str
    rack: str
    u: int
    cables: int
    wrong: int


@frozen
class FabricSummary:
    """One fabric: the last scan in one line and when it was (ISO 8601), its faults, and its switches.

    `problems`: what the scan could not read. `notes`: what was foreign in it.

    `scanned_at` is "" for a fabric that nobody scanned: then nothing is known of its cables.
    """

    name: str
    line: str
    scanned_at: str
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    faults: tuple[FaultyCabling, ...]
    switches: tuple[SwitchSummary, ...]


@frozen
class SwitchPort:
    """A port of a switch: its label, the designed other end, and whether the last scan found it so."""

    label: str
    state: PortState
    peer: CableEnd | None


def summarize_fabric(fabric: ScannedFabric, find_address: FindAddress) -> FabricSummary:
    """Return one fabric. `find_address` gives the pages of devices in the pictures."""
    topology, scan = fabric.topology, fabric.scan
    wrong = Counter(port.guid for port in fabric.wrong_ports)
    devices = [(device, topology.count_cables(device.guid)) for device in topology if device.kind == "switch"]
    switches = tuple(
        SwitchSummary(device.name, device.rack, device.u, cables, wrong[device.guid]) for device, cables in devices
    )
    if scan is None:
        return FabricSummary(topology.name, "nobody has scanned it yet", "", (), (), (), switches)
    seen, faults = scan.comparison, tuple(list_faults(scan, find_address))
    return FabricSummary(topology.name, seen.summary, scan.scanned_at, seen.problems, seen.notes, faults, switches)


def list_faults(
    scan: ScannedFabricComparison, find_address: FindAddress, node: str = "", ticket: str = ""
) -> Iterator[FaultyCabling]:
    """Yield what is wrong, each with its picture and its ticket: everything, or that of a node or of a ticket."""
    comparison = scan.comparison
    tickets = make_cabling_tickets(comparison)
    repairs = group_by_common_cause(comparison.discrepancies) if tickets else []
    named = {
        id(member): ticket.id for repair, ticket in zip(repairs, tickets, strict=True) for member in repair.members
    }
    for discrepancy in comparison.discrepancies:
        its_ticket = named.get(id(discrepancy), "")
        if (not node or node in discrepancy.nodes) and ticket in ("", its_ticket):
            yield FaultyCabling(discrepancy, draw_discrepancy(discrepancy, find_address), its_ticket)


def find_switch(fabrics: Iterable[ScannedFabric], name: str) -> tuple[ScannedFabric, DesignedDevice] | None:
    """Return a switch of this name, with its fabric; None without one."""
    devices = ((fabric, device) for fabric in fabrics for device in fabric.topology if device.kind == "switch")
    return next((place for place in devices if place[1].name == name), None)


def list_ports(fabric: ScannedFabric, switch: DesignedDevice) -> list[SwitchPort]:
    """Return the ports of a switch that have a designed cable, are spare on purpose, or are wrong, in order."""
    topology, wrong = fabric.topology, fabric.wrong_ports
    is_whole = fabric.scan is not None and fabric.scan.comparison.verdict != "partial"
    ports = []
    for number in range(1, switch.ports + 1):
        port = PortId(switch.guid, number)
        peer = topology.peer_ports.get(port)
        if peer is None and port not in topology.spare and port not in wrong:
            continue
        state: PortState = "wrong" if port in wrong else "spare" if peer is None else "right" if is_whole else "unknown"
        ports.append(SwitchPort(switch.label(number), state, topology.end(peer) if peer else None))
    return ports
