"""Maps LIDs and port GUIDs to devices, whose GUID is the identity, from what a plain ibnetdiscover printed.

perfquery and smpquery name a LID. `ibnetdiscover -p` and iblinkinfo name adapters by their port's GUID, which differs
from the device's on adapters with several ports, and in the simulator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from assay.fabric.discovery import DiscoveredCable, FabricDiscovery
from assay.model.fabric.ports_and_cables import PortId, normalize_guid

SWITCH = re.compile(r'(?m)^Switch\s*[0-9]+\s*"S-([0-9a-fA-F]{1,16})"\s*#\s*".*".* lid ([0-9]{1,5})\b')
ADAPTER = re.compile(r'(?m)^(?:Ca|Rt)\s*[0-9]+\s*"[HR]-([0-9a-fA-F]{1,16})"')
ADAPTER_PORT = re.compile(r'\[([0-9]{1,5})\]\s*\(([0-9a-fA-F]{1,16})\)\s*"[SHR]-.*?#\s*lid ([0-9]{1,5}) ')


@dataclass(frozen=True)
class LidAddresses:
    """Device GUIDs by LID, and ports by port GUID. Only adapters are in `ports`: a switch's port GUID is its own."""

    lids: Mapping[int, str] = field(default_factory=dict)
    ports: Mapping[str, PortId] = field(default_factory=dict)


def read_addresses(text: str) -> LidAddresses:
    """Return the addresses in a text of ibnetdiscover. LID 0 is left out: no subnet manager has assigned it."""
    lids = {int(found[2]): normalize_guid(found[1]) for found in SWITCH.finditer(text)}
    ports: dict[str, PortId] = {}
    starts = list(ADAPTER.finditer(text))
    for index, found in enumerate(starts):
        end = starts[index + 1].start() if index + 1 < len(starts) else len(text)
        for line in ADAPTER_PORT.finditer(text, found.end(), _record_end(text, found.end(), end)):
            ports[normalize_guid(line[2])] = PortId(normalize_guid(found[1]), int(line[1]))
            lids[int(line[3])] = normalize_guid(found[1])
    lids.pop(0, None)
    return LidAddresses(lids, ports)


def _record_end(text: str, start: int, end: int) -> int:
    following = text.find("\nSwitch", start, end)
    return end if following < 0 else following


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
    return FabricDiscovery(cables, devices, discovery.problems, facts, discovery.events, discovery.temperatures)
