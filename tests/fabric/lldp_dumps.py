"""Writes what the switches of an Ethernet fabric print about their neighbours, in the forms that the readers know.

The forms are those of lldpd 1.0.16's own output, sonic-utilities' `lldpshow` and `intfutil`, NVIDIA's NVUE reference
and napalm-cumulus, and openconfig-lldp.yang. Adapters report nothing themselves, unless a test says so.
"""

import json
from collections.abc import Callable, Mapping
from functools import cached_property

from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.discovery import DiscoveredCable
from assay.model.specs.fabric.cable import PortId, read_mac

Ports = Mapping[PortId, tuple[PortId, str]]


def list_cables(topology: CompiledTopology) -> list[DiscoveredCable]:
    return [DiscoveredCable(cable.a.port_id, cable.b.port_id, cable.rate) for cable in topology.cables]


class Dump:
    """The reports of all switches. `interface` gives the name of a switch's port, `adapter` that of an adapter's."""

    def __init__(
        self,
        topology: CompiledTopology,
        cables: list[DiscoveredCable],
        interface: Callable[[int], str] = lambda port: f"swp{port}",
        names: Mapping[str, str] | None = None,
    ) -> None:
        self.devices, self.interface = topology.devices, interface
        self.names = names or {}
        self.ends: dict[PortId, tuple[PortId, str]] = {}
        for a, b, rate in cables:
            self.ends[a], self.ends[b] = (b, rate), (a, rate)

    def name(self, guid: str) -> str:
        return self.names.get(guid) or (self.devices[guid].name if guid in self.devices else guid)

    def is_switch(self, guid: str) -> bool:
        return guid in self.devices and self.devices[guid].kind == "switch"

    def mac(self, guid: str) -> str:
        digits = read_mac(guid)
        return ":".join(digits[at : at + 2] for at in range(0, 12, 2))

    def host_port(self, guid: str) -> tuple[str, str]:
        host, _, slot = self.name(guid).partition(" ")
        return f"{host}.cluster.example", slot.replace("mlx5_", "ens") + "np0" if slot else ""

    @cached_property
    def reports(self) -> dict[str, list[tuple[int, PortId, str]]]:
        found: dict[str, list[tuple[int, PortId, str]]] = {}
        for here in sorted(self.ends):
            if self.is_switch(here.guid):
                found.setdefault(here.guid, []).append((here.number, *self.ends[here]))
        return found

    def neighbour(self, far: PortId) -> tuple[str, str, str, str, str]:
        """Return the name, the chassis, the port's id, its kind and its description, as the far end announces them."""
        if self.is_switch(far.guid):
            port = self.interface(far.number)
            return self.name(far.guid), self.mac(far.guid), port, "ifname", port
        host, port = self.host_port(far.guid)
        return host, self.mac(far.guid), self.mac(far.guid), "mac", port

    def lldpctl(self, guid: str) -> str:
        entries = []
        for number, far, rate in self.reports[guid]:
            name, chassis, port_id, kind, text = self.neighbour(far)
            port = {"id": {"type": kind, "value": port_id}, "descr": text, "ttl": "120"}
            port["auto-negotiation"] = {"supported": False, "current": f"{rate}baseCR4 - four lanes"}
            entry = {"via": "LLDP", "rid": "1", "age": "0 day, 01:00:03", "port": port}
            entry["chassis"] = {name: {"id": {"type": "mac", "value": chassis}, "descr": "Linux"}}
            entries.append({self.interface(number): entry})
        entries.append({"eth0": oob_neighbour()})
        return json.dumps({"lldp": {"interface": entries}}, indent=2)

    def nvue(self, guid: str) -> str:
        ports: dict[str, object] = {"lo": {"type": "loopback", "link": {"oper-status": "up"}}}
        for number, far, rate in self.reports[guid]:
            name, chassis, port_id, kind, text = self.neighbour(far)
            known = {"chassis": {"chassis-id": chassis, "system-name": name}, "port": {"name": port_id, "type": kind}}
            known["port"]["description"] = text
            link = {"oper-status": "up", "speed": rate, "mtu": 9216}
            ports[self.interface(number)] = {"type": "swp", "link": link, "lldp": {"neighbor": {name: known}}}
        return json.dumps(ports, indent=2)

    def openconfig(self, guid: str) -> str:
        ports = []
        for number, far, _ in self.reports[guid]:
            name, chassis, port_id, _, text = self.neighbour(far)
            state = {"chassis-id": chassis, "chassis-id-type": "MAC_ADDRESS", "system-name": name}
            state |= {"port-id": port_id, "port-id-type": "LOCAL", "port-description": text}
            neighbours = {"neighbor": [{"id": "1", "state": state}]}
            ports.append({"name": self.interface(number), "neighbors": neighbours})
        own = {"system-name": self.name(guid), "chassis-id": self.mac(guid), "chassis-id-type": "MAC_ADDRESS"}
        return json.dumps({"openconfig-lldp:lldp": {"state": own, "interfaces": {"interface": ports}}})

    def sonic(self, guid: str, alias: Callable[[int], str]) -> str:
        """Return `show lldp table` and `show interfaces status`: local names by lane, names at the far end by alias."""
        rows, status = [], []
        for number, far, rate in self.reports[guid]:
            name, _, port_id, _, text = self.neighbour(far)
            far_port = alias(far.number) if self.is_switch(far.guid) else port_id
            rows.append((self.interface(number), name, far_port, "BR", text))
            lanes = f"{8 * number},{8 * number + 1}"
            known = (lanes, rate, "9100", "rs", alias(number), "routed", "up", "up", "QSFP-DD", "N/A")
            status.append((self.interface(number), *known))
        titles = ("LocalPort", "RemoteDevice", "RemotePortID", "Capability", "RemotePortDescr")
        columns = ("Interface", "Lanes", "Speed", "MTU", "FEC", "Alias", "Vlan", "Oper", "Admin", "Type", "Asym PFC")
        return (
            "Capability codes: (R) Router, (B) Bridge, (O) Other\n"
            + tabulate(titles, rows)
            + f"{'-'.rjust(50, '-')}\nTotal entries displayed:  {len(rows)}\n"
            + tabulate(columns, status, right=True)
        )


def oob_neighbour() -> dict[str, object]:
    chassis = {"oob-mgmt-1": {"id": {"type": "mac", "value": "44:38:39:22:01:7e"}}}
    port = {"id": {"type": "ifname", "value": "swp10"}, "descr": "swp10", "ttl": "120"}
    return {"via": "LLDP", "rid": "1", "chassis": chassis, "port": port}


def tabulate(titles: tuple[str, ...], rows: list[tuple[str, ...]], *, right: bool = False) -> str:
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    lines = [titles, tuple("-" * width for width in widths), *rows]
    pad = str.rjust if right else str.ljust
    return "".join("  ".join(map(pad, line, widths)).rstrip() + "\n" for line in lines)


def by_clush(reports: Mapping[str, str]) -> str:
    return "".join(f"{host}: {line}\n" for host, text in reports.items() for line in text.splitlines())
