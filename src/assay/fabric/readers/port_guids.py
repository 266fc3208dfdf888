"""Tells which adapter's port has which GUID, from what discovery tools printed. The GUID of a device is its identity.

`ibnetdiscover -p` and iblinkinfo name adapters by their port's GUID, which differs from the device's on adapters with
several ports, and in the simulator.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from assay.fabric.discovery import DiscoveredCable, FabricDiscovery
from assay.fabric.readers.ibdiagnet_csv import read_guid, read_row_port, read_rows, read_sections
from assay.model.specs.fabric.cable import PortId, normalize_guid

DEVICE_OR_PORT = re.compile(
    r'(?m)^(?:Switch|Ca|Rt)\s*[0-9]+\s*"[SHR]-([0-9a-fA-F]{1,16})"'
    r'|\[([0-9]{1,5})\]\s*\(([0-9a-fA-F]{1,16})\)\s*"[SHR]-'
)
"""A record's head in ibnetdiscover, or the own end of one of its ports."""


def read_port_guids(text: str) -> dict[str, PortId]:
    """Return the ports by GUID in a text of ibnetdiscover or a `db_csv`; none for other texts.

    A port whose GUID is that of its device, as those of switches are, is left out.
    """
    if "START_PORTS" in text:
        tables = read_sections(text, ("PORTS",), [])
        listed = read_rows(
            tables, "PORTS", lambda row: (read_guid(row, "PortGuid", "PortGUID"), read_row_port(row)), []
        )
    else:
        listed = _read_lines(text)
    return {guid: port for guid, port in listed if guid != port.guid}


def _read_lines(text: str) -> Iterator[tuple[str, PortId]]:
    device = ""
    for match in DEVICE_OR_PORT.finditer(text):
        if match[1]:
            device = normalize_guid(match[1])
        elif device:
            yield normalize_guid(match[3]), PortId(device, int(match[2]))


def resolve_port_guids(discovery: FabricDiscovery, known: Mapping[str, PortId]) -> FabricDiscovery:
    """Return the discovery with each adapter under its device's GUID instead of its port's."""

    def resolve(port: PortId) -> PortId:
        return known.get(port.guid, port)

    cables = [DiscoveredCable(resolve(cable.a), resolve(cable.b), cable.rate) for cable in discovery.cables]
    devices = {}
    for port_guid, device in discovery.devices.items():
        guid = known[port_guid].guid if port_guid in known else port_guid
        devices[guid] = device._replace(guid=guid)
    facts = {resolve(port): replace(facts, port=resolve(port)) for port, facts in discovery.facts.items()}
    return FabricDiscovery(cables, devices, discovery.problems, facts, discovery.temperatures, discovery.notes)
