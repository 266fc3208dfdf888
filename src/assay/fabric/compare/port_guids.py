"""Which designed adapters a discovery shows that names adapters by the GUIDs of their ports.

With ConnectX-4 and later, a port's GUID is its device's. With older adapters and in the simulator ibsim, it is the
device's plus the port's number. The text does not tell which, and one GUID cannot: a replaced card may have the next
number. So the adapters vote, each by whether the design has its GUID, and by whether its cable is in place then. Those
of one driver, which some adapters announce (`n01 mlx4_0`), vote for themselves. An adapter with another node's name has
no vote for a shift; what a shift makes of it is told as of any adapter that was moved.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from assay.fabric.compare.announced_names import AnnouncedNames
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice, FabricDiscovery
from assay.fabric.reading_problems import LocalProblem
from assay.model.specs.fabric.ports_and_cables import PortId

DRIVER = re.compile(r"(?i)\bmlx[0-9]+(?=_)")


def resolve_designed_adapters(topology: CompiledTopology, discovery: FabricDiscovery) -> FabricDiscovery:
    """Return the discovery with each designed adapter under its device's GUID instead of its port's."""
    adapters = (guid for guid, device in discovery.devices.items() if device.kind == "hca")
    if not discovery.port_guids or all(guid in topology.devices for guid in adapters):
        return discovery
    owners = _PortOwners(topology, discovery).find()
    return _rename(discovery, owners) if owners else discovery


@dataclass
class _Votes:
    """How much speaks for GUIDs of devices (`own`), and for those of ports beside them (`shifted`)."""

    own: int = 0
    shifted: int = 0


class _PortOwners:
    def __init__(self, topology: CompiledTopology, discovery: FabricDiscovery) -> None:
        self.topology, self.discovery = topology, discovery
        self.names = AnnouncedNames(topology, {})

    def find(self) -> dict[str, str]:
        """Return the device's GUID by the port's, for each port of a designed adapter."""
        ports = self._list_adapter_ports()
        owners = {port.guid: owner for port in ports if (owner := self._find_owner(port))}
        votes = self._count_votes(ports, owners)
        votes_of = {guid: votes.get(self._find_driver(guid), votes[""]) for guid in owners}
        owners = {guid: owner for guid, owner in owners.items() if votes_of[guid].shifted > votes_of[guid].own}
        while taken := [
            guid for guid, owner in owners.items() if owner in self.discovery.devices and owner not in owners
        ]:
            for guid in taken:  # the owner answers under its own GUID, so this is another device
                del owners[guid]
        return owners

    def _list_adapter_ports(self) -> dict[PortId, PortId | None]:
        """Return each port of a possible adapter with its other end. A port's GUID has one port."""
        far: dict[PortId, PortId | None] = dict.fromkeys(self.discovery.facts)
        for a, b, _ in self.discovery.cables:
            far |= {a: b, b: a}
        count = Counter(port.guid for port in far)
        return {port: there for port, there in far.items() if count[port.guid] == 1 and self._may_be_adapter(port.guid)}

    def _may_be_adapter(self, guid: str) -> bool:
        seen = self.discovery.devices.get(guid)
        return seen.kind == "hca" if seen else True

    def _find_owner(self, port: PortId) -> str:
        """Return the designed adapter whose GUID is a port's less its number, "" for none."""
        guid = f"0x{max(int(port.guid, 16) - port.number, 0):016x}"
        designed = self.topology.devices.get(guid)
        return guid if designed and designed.kind == "hca" else ""

    def _is_its_name(self, guid: str, owner: str) -> bool:
        """Return whether an adapter announces the node of its owner, or no node of the design."""
        seen = self.discovery.devices.get(guid)
        return not seen or self.names.find_node(seen.name) in ("", self.topology.devices[owner].node)

    def _count_votes(self, ports: Mapping[PortId, PortId | None], owners: Mapping[str, str]) -> dict[str, _Votes]:
        """Return the votes of each driver's adapters, and under "" those of all."""
        votes: dict[str, _Votes] = defaultdict(_Votes)
        peers = self.topology.peer_ports
        for port, there in ports.items():
            designed = peers.get(there) if there else None
            for key in {"", self._find_driver(port.guid)}:
                if port.guid in self.topology.devices:
                    votes[key].own += 1 + (designed == port)
                owner = owners.get(port.guid)
                if owner and self._is_its_name(port.guid, owner):
                    votes[key].shifted += 1 + (designed == PortId(owner, port.number))
        return votes

    def _find_driver(self, guid: str) -> str:
        seen = self.discovery.devices.get(guid)
        found = DRIVER.search(seen.description) if seen else None
        return found[0].lower() if found else ""


def _rename(discovery: FabricDiscovery, owners: Mapping[str, str]) -> FabricDiscovery:
    def rename(port: PortId) -> PortId:
        return PortId(owners.get(port.guid, port.guid), port.number)

    devices: dict[str, DiscoveredDevice] = {}
    for guid, device in discovery.devices.items():
        owner = owners.get(guid, guid)
        known = devices.get(owner)
        devices[owner] = device._replace(guid=owner, ports=max(device.ports, known.ports if known else 0))
    return replace(
        discovery,
        cables=[DiscoveredCable(rename(a), rename(b), rate) for a, b, rate in discovery.cables],
        devices=devices,
        problems=tuple(_rename_problems(discovery, owners)),
        facts={rename(port): replace(facts, port=rename(port)) for port, facts in discovery.facts.items()},
    )


def _rename_problems(discovery: FabricDiscovery, owners: Mapping[str, str]) -> Iterator[str]:
    for problem in discovery.problems:
        if isinstance(problem, LocalProblem):
            yield LocalProblem(problem, *(owners.get(guid, guid) for guid in problem.devices))
        else:
            yield problem
