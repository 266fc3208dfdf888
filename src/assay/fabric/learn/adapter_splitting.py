"""Takes each port of an adapter for an adapter of its own, where most adapters have the same several cabled ports.

So each has one cable, as the inference of rails needs it. The rules then say which port of which adapter each rail is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice, FabricDiscovery
from assay.fabric.learn.host_recognition import sort_naturally
from assay.model.specs.fabric.adapter_names import HostAdapter
from assay.model.specs.fabric.ports_and_cables import PortId

MIN_PORTS = 2


@dataclass(frozen=True)
class SplitAdapters:
    """A discovery in which each cabled port of an adapter is a device, `GUID/PORT`, and the host of each of these.

    `rails`: where a list gives the order of a node's adapters, the place of each name in it.
    """

    discovery: FabricDiscovery
    hosts: Mapping[str, HostAdapter]
    rails: Mapping[str, int]

    def join(self, rules: Mapping[str, Any]) -> dict[str, Any]:
        """Return the rules of a design with whole adapters, and the port of each rail."""
        rails = [slot.rpartition("/") for slot in rules["adapter_names"]]
        names = sorted({name for name, _, _ in rails}, key=lambda name: (self.rails.get(name, 0), sort_naturally(name)))
        ports = [f"{names.index(name)}/{port}" for name, _, port in rails]
        adapters = {
            host: [self._find_adapter([guid for guid, (name, _, _) in zip(guids, rails, strict=True) if name == own])
                   for own in names]
            for host, guids in rules["adapters"].items()
        }  # fmt: skip
        return {**rules, "adapter_names": names, "adapter_ports": ports, "adapters": adapters}

    def _find_adapter(self, ports: Sequence[str]) -> str:
        """Return the GUID of the adapter with these ports. A port that nobody saw is of the adapter of the others."""
        seen = [port for port in ports if port in self.hosts]
        return (seen or ports)[0].partition("/")[0]


def split_adapters(discovery: FabricDiscovery, hosts: Mapping[str, HostAdapter]) -> SplitAdapters | None:
    """Return the discovery with the ports of adapters apart, None where most adapters have one cabled port."""
    cabled: dict[str, set[int]] = defaultdict(set)
    for port in (port for cable in discovery.cables for port in cable[:2] if port.guid in hosts):
        cabled[port.guid].add(port.number)
    usual = _find_usual_ports(cabled, hosts)
    if max(map(len, usual.values()), default=0) < MIN_PORTS:
        return None
    own = {f"{guid}/{number}": hosts[guid]._replace(slot=f"{hosts[guid].slot}/{number}", rail=-1)
           for guid in cabled for number in usual[hosts[guid].slot]}  # fmt: skip
    devices = {guid: device for guid, device in discovery.devices.items() if guid not in cabled}
    devices |= {name: DiscoveredDevice(name, "hca", 1, host.host) for name, host in own.items()}
    cables = [DiscoveredCable(_find_port(cable.a, own), _find_port(cable.b, own), cable.rate)
              for cable in discovery.cables]  # fmt: skip
    listed = {host.slot: host.rail for host in hosts.values() if host.rail >= 0}
    return SplitAdapters(FabricDiscovery(cables, devices), own, listed)


def _find_usual_ports(cabled: Mapping[str, set[int]], hosts: Mapping[str, HostAdapter]) -> dict[str, frozenset[int]]:
    """Return the ports with a cable that most adapters of each name have."""
    count: dict[str, Counter[frozenset[int]]] = defaultdict(Counter)
    for guid, ports in cabled.items():
        count[hosts[guid].slot][frozenset(ports)] += 1
    return {slot: ports.most_common(1)[0][0] for slot, ports in count.items()}


def _find_port(port: PortId, own: Mapping[str, HostAdapter]) -> PortId:
    name = f"{port.guid}/{port.number}"
    return PortId(name, 1) if name in own else port
