"""`python -m assay.lab.fabric.ibnetdiscover LABDIR [NODE]` prints the discovery of the present fabric of a node.

It is written from the lab's cables, in the format of ibnetdiscover. A test compares it with what the real ibnetdiscover
prints of the same cables in the simulator ibsim.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice
from assay.lab.fabric.cabling import find_links, find_reachable_devices, load_cabling
from assay.lab.world import LabWorld
from assay.model.errors import AssayError
from assay.model.specs.fabric.cable import PortId

PeerPorts = dict[PortId, tuple[PortId, str]]
LETTER = {"switch": "S", "hca": "H", "router": "R"}
DEVICE_ID = {"switch": "0xd2f2", "hca": "0x1021", "router": "0xd2f2"}
"""Quantum-2 and ConnectX-7 (from the PCI ID database)."""


def peer_ports(cables: Iterable[DiscoveredCable]) -> PeerPorts:
    """Return port → (port at the other end, rate)."""
    ends: PeerPorts = {}
    for cable in cables:
        ends[cable.a] = (cable.b, cable.rate)
        ends[cable.b] = (cable.a, cable.rate)
    return ends


def find_discovery_root(devices: Mapping[str, DiscoveredDevice], ends: PeerPorts) -> str:
    """Return the GUID of the switch with the most links, the first of several: the discovery starts there.

    Where there is no switch, it is that of an adapter.
    """
    switches = [guid for guid, device in devices.items() if device.kind == "switch"]
    count = dict.fromkeys(switches or devices, 0)
    for port in ends:
        if port.guid in count:
            count[port.guid] += 1
    return max(count, key=lambda guid: count[guid])


def format_net_file(devices: Mapping[str, DiscoveredDevice], cables: Iterable[DiscoveredCable]) -> str:
    """Return the fabric in ibnetdiscover's format, the root first."""
    ends = peer_ports(cables)
    first = find_discovery_root(devices, ends)
    order = [devices[first], *(device for guid, device in devices.items() if guid != first)]
    ports: dict[str, list[PortId]] = {guid: [] for guid in devices}
    for port in sorted(ends):
        ports[port.guid].append(port)
    return "\n".join(
        _format_device_record(device, [format_port_line(devices, p, *ends[p]) for p in ports[device.guid]])
        for device in order
    )


def format_port_line(devices: Mapping[str, DiscoveredDevice], here: PortId, there: PortId, rate: str) -> str:
    """Return the line of one port; adapters and switches differ in form."""
    peer = devices[there.guid]
    far = f'"{LETTER[peer.kind]}-{there.guid[2:]}"[{there.number}]{_port_guid(peer, there)}'
    if devices[here.guid].kind == "hca":
        own = _port_guid(devices[here.guid], here)
        return f'[{here.number}]{own} \t{far}\t\t# lid 0 lmc 0 "{peer.description}" lid 0 {rate}'
    return f'[{here.number}]\t{far}{" " if peer.kind == "hca" else ""}\t\t# "{peer.description}" lid 0 {rate}'


def _format_device_record(device: DiscoveredDevice, lines: list[str]) -> str:
    guid = device.guid[2:]
    letter = LETTER[device.kind]
    if device.kind == "hca":
        kind = [f"caguid=0x{guid}", f'Ca\t{device.ports} "{letter}-{guid}"\t\t# "{device.description}"']
    else:
        comment = f'# "{device.description}" enhanced port 0 lid 0 lmc 0'
        kind = [f"switchguid=0x{guid}({guid})", f'Switch\t{device.ports} "{letter}-{guid}"\t\t{comment}']
    head = ["vendid=0x2c9", f"devid={DEVICE_ID[device.kind]}", f"sysimgguid={device.system or device.guid}"]
    return "\n".join([*head, *kind, *lines, ""])


def _port_guid(device: DiscoveredDevice, port: PortId) -> str:
    """Return the port's GUID in parentheses: as in ibsim, the device's GUID plus the port number; "" for a switch."""
    return f"({int(device.guid, 16) + port.number:x})" if device.kind == "hca" else ""


def discover_lab_fabric(world: LabWorld, node: str = "") -> str:
    """Return the discovery of the fabric of `node`, or of all fabrics: the devices that links lead to.

    Raises AssayError if there is no fabric.
    """
    now = load_cabling(world, node)
    links = find_links(world, now)
    root = find_discovery_root(now.devices, peer_ports(links))
    reached = find_reachable_devices([root], links)
    devices = {guid: device for guid, device in now.devices.items() if guid in reached}
    net_file = format_net_file(devices, (link for link in links if link.a.guid in reached))
    return f"#\n# Initiated from node {root[2:]} port {root[2:]}\n\n{net_file}"


def print_discovery(module: str, discover: Callable[..., str], arguments: Sequence[str]) -> int:
    """Print a discovery of a lab's fabric. Return 1, with the reason on stderr, if it fails; 2 on misuse."""
    if len(arguments) not in (1, 2):
        print(f"usage: python -m assay.lab.fabric.{module} LABDIR [NODE]", file=sys.stderr)  # noqa: T201
        return 2
    try:
        sys.stdout.write(discover(LabWorld(Path(arguments[0])), *arguments[1:]))
    except AssayError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(print_discovery("ibnetdiscover", discover_lab_fabric, sys.argv[1:]))
