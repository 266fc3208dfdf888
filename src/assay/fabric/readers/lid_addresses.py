"""Whose LID and whose port GUID: what turns the names that some tools use into the GUID that is the identity.

perfquery and smpquery answer for a LID; `ibnetdiscover -p` and iblinkinfo name adapters by their port's GUID, which is
another than the device's on adapters with several ports, and in the simulator. A plain ibnetdiscover of the same
fabric has all three.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from assay.fabric.discovery import DiscoveredCable, FabricDiscovery
from assay.fabric.readers.port_listing import normalise_guid
from assay.model.fabric.ports_and_cables import PortId

SWITCH = re.compile(r'(?m)^Switch\s*[0-9]+\s*"S-([0-9a-fA-F]{1,16})"\s*#\s*".*".* lid ([0-9]{1,5})\b')
ADAPTER = re.compile(r'(?m)^(?:Ca|Rt)\s*[0-9]+\s*"[HR]-([0-9a-fA-F]{1,16})"')
ADAPTER_PORT = re.compile(r'\[([0-9]{1,5})\]\s*\(([0-9a-fA-F]{1,16})\)\s*"[SHR]-.*?#\s*lid ([0-9]{1,5}) ')


@dataclass(frozen=True)
class LidAddresses:
    """Devices by LID, and ports by port GUID, for adapters only: a switch's port GUID is its own."""

    lids: Mapping[int, str] = field(default_factory=dict)
    ports: Mapping[str, PortId] = field(default_factory=dict)


def read_addresses(text: str) -> LidAddresses:
    """Return the addresses in what ibnetdiscover printed. LID 0 is nobody's: no subnet manager has given any."""
    lids = {int(found[2]): normalise_guid(found[1]) for found in SWITCH.finditer(text)}
    ports: dict[str, PortId] = {}
    starts = list(ADAPTER.finditer(text))
    for index, found in enumerate(starts):
        end = starts[index + 1].start() if index + 1 < len(starts) else len(text)
        for line in ADAPTER_PORT.finditer(text, found.end(), _record_end(text, found.end(), end)):
            ports[normalise_guid(line[2])] = PortId(normalise_guid(found[1]), int(line[1]))
            lids[int(line[3])] = normalise_guid(found[1])
    lids.pop(0, None)
    return LidAddresses(lids, ports)


def _record_end(text: str, start: int, end: int) -> int:
    following = text.find("\nSwitch", start, end)
    return end if following < 0 else following


def resolve_port_guids(discovery: FabricDiscovery, known: LidAddresses) -> FabricDiscovery:
    """Return the same discovery with adapters named by their device's GUID where their port's stood."""

    def port(one: PortId) -> PortId:
        return known.ports.get(one.guid, one)

    cables = [DiscoveredCable(port(cable.a), port(cable.b), cable.rate) for cable in discovery.cables]
    devices = {
        (to := known.ports[key].guid if key in known.ports else key): one._replace(guid=to)
        for key, one in discovery.devices.items()
    }
    facts = {port(one): replace(said, port=port(one)) for one, said in discovery.facts.items()}
    return FabricDiscovery(cables, devices, discovery.problems, facts, discovery.events, discovery.temperatures)
