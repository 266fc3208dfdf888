"""A scan of the example fleet's fabric: two cables are exchanged, one is missing, one is in a wrong port."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from assay.fabric.design.compiler import compile_topology
from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice
from assay.fabric.scan import format_fabric_subject
from assay.lab.fabric.ibnetdiscover import format_net_file
from assay.model.evidence import EvidenceDocument
from assay.model.fleet import Fleet
from assay.model.reading import value
from assay.model.specs.fabric.cable import PortId
from assay.observe.evidence_store import EvidenceStore

RAIL = 3
EXCHANGED, MISSING, MOVED = ("n0005", "n0006"), "n0009", "n0010"


def store_faulty_scan(fleet: Fleet, home: Path, design: str = "compute", pasted: str = "") -> None:
    """Store the scan as the newest evidence of the fabric. `pasted` are foreign lines before the tool's."""
    topology = compile_topology(fleet.designs[design], fleet)
    ports = {name: topology.cables_of_node(name)[RAIL] for name in (*EXCHANGED, MISSING, MOVED)}
    first, second = (ports[name] for name in EXCHANGED)
    leaf = topology.devices[ports[MOVED].b.guid]
    free = next(n for n in range(leaf.ports, 0, -1) if PortId(leaf.guid, n) not in topology.cable_numbers)
    ends = {first.a.port_id: second.b.port_id, second.a.port_id: first.b.port_id, ports[MISSING].a.port_id: None}
    ends[ports[MOVED].a.port_id] = PortId(leaf.guid, free)
    cables = [(one.a.port_id, ends.get(one.a.port_id, one.b.port_id), one.rate) for one in topology.cables]
    devices = {
        guid: DiscoveredDevice(guid, one.kind, one.ports, one.description) for guid, one in topology.devices.items()
    }
    text = pasted + format_net_file(devices, [DiscoveredCable(a, b, rate) for a, b, rate in cables if b])
    channels = {"discovery": {"text": value(text), "stderr": value(""), "command": value("ibnetdiscover")}}
    scan = EvidenceDocument(format_fabric_subject(fleet.designs[design]), datetime.now(UTC), channels)
    EvidenceStore(home / "evidence").store_latest(scan)
