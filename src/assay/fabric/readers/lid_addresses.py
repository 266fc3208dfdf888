"""Maps LIDs and port GUIDs to devices, whose GUID is the identity, from what discovery tools printed.

perfquery and smpquery name a LID. `ibnetdiscover -p` and iblinkinfo name adapters by their port's
GUID, which differs from the device's on adapters with several ports, and in the simulator.

A port with LMC n has 2^n LIDs. ibnetdiscover and `db_csv` tell the LMC; `.lst` and `net_dump` name the first LID only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from assay.fabric.discovery import DiscoveredCable, FabricDiscovery
from assay.fabric.readers.ibdiagnet_csv import (
    Row,
    read_guid,
    read_number,
    read_row_port,
    read_rows,
    read_sections,
    read_text,
)
from assay.model.specs.fabric.cable import PortId, normalize_guid

SWITCH = re.compile(r'(?m)^Switch\s*[0-9]+\s*"S-([0-9a-fA-F]{1,16})"\s*#\s*".*".* lid ([0-9]{1,5})\b')
ADAPTER = re.compile(r'(?m)^(?:Ca|Rt)\s*[0-9]+\s*"[HR]-([0-9a-fA-F]{1,16})"')
ADAPTER_PORT = re.compile(
    r'\[([0-9]{1,5})\]\s*\(([0-9a-fA-F]{1,16})\)\s*"[SHR]-.*?#\s*lid ([0-9]{1,5}) (?:lmc ([0-7])\b)?'
)
LIST_END = re.compile(
    r"\{ CA(?:-SM)? Ports:.*? NodeGUID:([0-9a-fA-F]{1,16}) PortGUID:([0-9a-fA-F]{1,16}) "
    r".*? LID:([0-9a-fA-F]{1,4}) PN:([0-9a-fA-F]{1,2}) \}"
)
DUMP_ROW = re.compile(r"(?m):\s*(0x[0-9a-fA-F]{1,16})\s*:\s*([0-9]{1,3})\s*:\s*([0-9]{1,5})\s*:\s*\"[^\"\n]*\"\s*$")
"""The far end of a row of net_dump: GUID, port, LID."""
Address = tuple[range, str, PortId]
"""The LIDs of a port, its GUID ("" if not told), and the port."""


@dataclass(frozen=True)
class LidAddresses:
    """Device GUIDs by LID, and ports by port GUID.

    `lids` has every LID of a port whose LMC is known. `ports` has adapters only: a switch's port GUID is its own.
    """

    lids: Mapping[int, str] = field(default_factory=dict)
    ports: Mapping[str, PortId] = field(default_factory=dict)


def read_addresses(text: str) -> LidAddresses:
    """Return the addresses in a text of ibnetdiscover, a `.lst`, a `net_dump` or a `db_csv`; none for other texts.

    LID 0 is left out: no subnet manager has assigned it.
    """
    devices: dict[int, str] = {}
    ports: dict[str, PortId] = {}
    if "START_PORTS" in text:  # all ports of a switch have its LID there
        addresses = read_rows(read_sections(text, ("PORTS",), []), "PORTS", _read_row, [])
    else:
        addresses = _read_lines(text)
    for own, port_guid, port in addresses:
        devices |= dict.fromkeys(own, port.guid)
        if port_guid not in ("", port.guid):
            ports[port_guid] = port
    devices |= {int(switch[2]): normalize_guid(switch[1]) for switch in SWITCH.finditer(text)}
    devices.pop(0, None)
    return LidAddresses(devices, ports)


def _read_lines(text: str) -> Iterator[Address]:
    """Yield the addresses of adapters in ibnetdiscover and `.lst`, and of all far ends in `net_dump`."""
    starts = list(ADAPTER.finditer(text))
    for index, adapter in enumerate(starts):
        end = starts[index + 1].start() if index + 1 < len(starts) else len(text)
        following = text.find("\nSwitch", adapter.end(), end)
        for line in ADAPTER_PORT.finditer(text, adapter.end(), end if following < 0 else following):
            port = PortId(normalize_guid(adapter[1]), int(line[1]))
            yield _list_lids(int(line[3]), int(line[4] or 0)), normalize_guid(line[2]), port
    for listed in LIST_END.finditer(text):
        port = PortId(normalize_guid(listed[1]), int(listed[4], 16))
        yield _list_lids(int(listed[3], 16), 0), normalize_guid(listed[2]), port
    for row in DUMP_ROW.finditer(text):
        yield _list_lids(int(row[3]), 0), "", PortId(normalize_guid(row[1][2:]), int(row[2]))


def _read_row(row: Row) -> Address:
    lmc = read_number(row, "LMC") if read_text(row, "LMC") else 0
    return _list_lids(read_number(row, "LID"), lmc), read_guid(row, "PortGuid", "PortGUID"), read_row_port(row)


def _list_lids(first: int, lmc: int) -> range:
    return range(first, first + (1 << min(lmc, 7))) if first else range(0)


def resolve_port_guids(discovery: FabricDiscovery, known: LidAddresses) -> FabricDiscovery:
    """Return the discovery with each adapter under its device's GUID instead of its port's."""

    def resolve(port: PortId) -> PortId:
        return known.ports.get(port.guid, port)

    cables = [DiscoveredCable(resolve(cable.a), resolve(cable.b), cable.rate) for cable in discovery.cables]
    devices = {}
    for port_guid, device in discovery.devices.items():
        guid = known.ports[port_guid].guid if port_guid in known.ports else port_guid
        devices[guid] = device._replace(guid=guid)
    facts = {resolve(port): replace(facts, port=resolve(port)) for port, facts in discovery.facts.items()}
    return FabricDiscovery(
        cables, devices, discovery.problems, facts, discovery.events, discovery.temperatures, discovery.notes
    )
