"""Writes a fabric the way ibnetdiscover prints it, which is also what ibsim reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from assay.fabric.discovery import FoundCable, FoundDevice
from assay.model.cable import Port

Mates = dict[Port, tuple[Port, str]]
LETTER = {"switch": "S", "hca": "H", "router": "R"}
DEVICE_ID = {"switch": "0xd2f2", "hca": "0x1021", "router": "0xd2f2"}
"""Quantum-2 and ConnectX-7 (PCI ids database)."""


def mates(cables: Iterable[FoundCable]) -> Mates:
    """Return each port's other end and the rate."""
    ends: Mates = {}
    for cable in cables:
        ends[cable.a], ends[cable.b] = (cable.b, cable.rate), (cable.a, cable.rate)
    return ends


def centre(devices: Mapping[str, FoundDevice], ends: Mates) -> str:
    """Return the GUID to look from: the first switch among those with the most links."""
    count = dict.fromkeys((guid for guid, device in devices.items() if device.kind == "switch"), 0)
    for port in ends:
        if port.guid in count:
            count[port.guid] += 1
    return max(count, key=lambda guid: count[guid])


def net(devices: Mapping[str, FoundDevice], cables: Iterable[FoundCable]) -> str:
    """Return the whole file, the centre first, since tools attach to the first record."""
    ends = mates(cables)
    first = centre(devices, ends)
    order = [devices[first], *(device for guid, device in devices.items() if guid != first)]
    ports: dict[str, list[Port]] = {guid: [] for guid in devices}
    for port in sorted(ends):
        ports[port.guid].append(port)
    return "\n".join(_record(device, [port_line(devices, p, *ends[p]) for p in ports[device.guid]]) for device in order)


def port_line(devices: Mapping[str, FoundDevice], here: Port, there: Port, rate: str) -> str:
    """Return the line of one port, in the form of its device's kind."""
    peer = devices[there.guid]
    far = f'"{LETTER[peer.kind]}-{there.guid[2:]}"[{there.number}]{_port_guid(peer, there)}'
    if devices[here.guid].kind == "hca":
        own = _port_guid(devices[here.guid], here)
        return f'[{here.number}]{own} \t{far}\t\t# lid 0 lmc 0 "{peer.description}" lid 0 {rate}'
    return f'[{here.number}]\t{far}{" " if peer.kind == "hca" else ""}\t\t# "{peer.description}" lid 0 {rate}'


def _record(device: FoundDevice, lines: list[str]) -> str:
    guid, letter = device.guid[2:], LETTER[device.kind]
    if device.kind == "hca":
        kind = [f"caguid=0x{guid}", f'Ca\t{device.ports} "{letter}-{guid}"\t\t# "{device.description}"']
    else:
        said = f'# "{device.description}" enhanced port 0 lid 0 lmc 0'
        kind = [f"switchguid=0x{guid}({guid})", f'Switch\t{device.ports} "{letter}-{guid}"\t\t{said}']
    head = ["vendid=0x2c9", f"devid={DEVICE_ID[device.kind]}", f"sysimgguid=0x{guid}"]
    return "\n".join([*head, *kind, *lines, ""])


def _port_guid(device: FoundDevice, port: Port) -> str:
    """An adapter's port has the next GUID in ibsim; a switch's ports have none."""
    return f"({int(device.guid, 16) + port.number:x})" if device.kind == "hca" else ""
