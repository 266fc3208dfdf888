"""The fabrics as they were scanned last: what differs from the design, and each switch with what is at its ports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from assay.act.loop.snapshot import ScannedFabricComparison
from assay.fabric.compare.common_causes import group_by_common_cause
from assay.fabric.compare.discrepancy import CablingDiscrepancy
from assay.fabric.compare.tickets import make_cabling_tickets
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.devices import DesignedDevice
from assay.fabric.fabric_drawing import draw_fabric
from assay.fabric.fabric_picture import FabricPicture
from assay.fabric.fault_drawing import FindAddress, draw_discrepancy
from assay.model.specs.fabric.cable import CableEnd, PortId

PortState = Literal["right", "wrong", "unknown", "spare"]


@dataclass(frozen=True, slots=True)
class ScannedFabric:
    """A designed fabric and its last scan, None if nobody has scanned it."""

    topology: CompiledTopology
    scan: ScannedFabricComparison | None

    @property
    def wrong_ports(self) -> set[PortId]:
        """The ports at which something is wrong."""
        found = self.scan.comparison.discrepancies if self.scan else ()
        return {end.port_id for one in found for end in one.ends}


@dataclass(frozen=True, slots=True)
class FaultyCabling:
    """One thing that is wrong, its picture (SVG), and the id of its ticket; "" where the scan was partial."""

    discrepancy: CablingDiscrepancy
    drawing: str
    ticket: str


@dataclass(frozen=True, slots=True)
class SwitchSummary:
    """One switch of the design: its place, its designed cables, and how many of them are wrong."""

    name: str
    rack: str
    u: int
    cables: int
    wrong: int


@dataclass(frozen=True, slots=True)
class FabricSummary:
    """One fabric: the last scan in one line and when it was (ISO 8601), its faults, and its switches.

    `problems`: what the scan could not read. `notes`: what was foreign in it.

    `drawing` is the part of the fabric that has faults, as SVG. `scanned_at` is "" for a fabric that nobody scanned:
    then nothing is known of its cables.
    """

    name: str
    line: str
    scanned_at: str
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    faults: tuple[FaultyCabling, ...]
    drawing: str
    switches: tuple[SwitchSummary, ...]


@dataclass(frozen=True, slots=True)
class SwitchPort:
    """A port of a switch: its label, the designed other end, and whether the last scan found it so."""

    label: str
    state: PortState
    peer: CableEnd | None


def summarize_fabric(fabric: ScannedFabric, find_address: FindAddress) -> FabricSummary:
    """Return one fabric. `find_address` gives the pages of devices in the pictures."""
    topology, scan = fabric.topology, fabric.scan
    wrong = Counter(port.guid for port in fabric.wrong_ports)
    switches = tuple(
        SwitchSummary(one.name, one.rack, one.u, len(topology.cables_of_device(one.guid)), wrong[one.guid])
        for one in topology
        if one.kind == "switch"
    )
    if scan is None:
        return FabricSummary(topology.name, "nobody has scanned it yet", "", (), (), (), "", switches)
    found, faults = scan.comparison, tuple(list_faults(scan, find_address))
    drawing = draw_fabric(FabricPicture(topology, found.discrepancies), style="") if faults else ""
    return FabricSummary(
        topology.name, found.summary, scan.scanned_at, found.problems, found.notes, faults, drawing, switches
    )


def list_faults(
    scan: ScannedFabricComparison, find_address: FindAddress, node: str = "", ticket: str = ""
) -> Iterator[FaultyCabling]:
    """Yield what is wrong, each with its picture and its ticket: everything, or that of a node or of a ticket."""
    found = scan.comparison
    tickets = make_cabling_tickets(found)
    repairs = group_by_common_cause(found.discrepancies) if tickets else []
    named = {id(one): ticket.id for repair, ticket in zip(repairs, tickets, strict=True) for one in repair.members}
    for one in found.discrepancies:
        its_ticket = named.get(id(one), "")
        if (not node or node in one.nodes) and ticket in ("", its_ticket):
            yield FaultyCabling(one, draw_discrepancy(one, find_address), its_ticket)


def draw_ticket(fabric: ScannedFabric, ticket: str) -> str:
    """Return a picture of the part of a fabric that a ticket is about, "" for a ticket of something else."""
    discrepancies = fabric.scan.comparison.discrepancies if fabric.scan else ()
    tickets = make_cabling_tickets(fabric.scan.comparison) if fabric.scan else []
    for repair, own in zip(group_by_common_cause(discrepancies), tickets, strict=True):
        if own.id == ticket:
            return draw_fabric(FabricPicture(fabric.topology, repair.members), style="")
    return ""


def find_switch(fabrics: Iterable[ScannedFabric], name: str) -> tuple[ScannedFabric, DesignedDevice] | None:
    """Return a switch of this name, with its fabric; None without one."""
    devices = ((fabric, device) for fabric in fabrics for device in fabric.topology if device.kind == "switch")
    return next((found for found in devices if found[1].name == name), None)


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
