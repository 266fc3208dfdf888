"""`python -m assay.lab.fabric.ibnetdiscover LABDIR` prints the discovery of the lab's present fabric.

With ibsim installed, the real ibnetdiscover runs on it (`assay.lab.fabric.ibsim`). Otherwise a recording of the real
ibnetdiscover is replayed with the changes: lines of unchanged links stay, other lines are rewritten in the same form,
and unreachable devices are left out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path

from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice
from assay.fabric.readers.ibnetdiscover import DEVICE, PORT, parse
from assay.lab.fabric import ibsim
from assay.lab.fabric.cabling import LabCabling, find_links, load_cabling
from assay.lab.fabric.ibsim import PACKAGES
from assay.lab.world import LabWorld
from assay.model.errors import AssayError
from assay.model.fabric.ports_and_cables import PortId

PeerPorts = dict[PortId, tuple[PortId, str]]
LETTER = {"switch": "S", "hca": "H", "router": "R"}
DEVICE_ID = {"switch": "0xd2f2", "hca": "0x1021", "router": "0xd2f2"}
"""Quantum-2 and ConnectX-7 (from the PCI ID database)."""


def peer_ports(cables: Iterable[DiscoveredCable]) -> PeerPorts:
    """Return port → (port at the other end, rate)."""
    ends: PeerPorts = {}
    for cable in cables:
        ends[cable.a], ends[cable.b] = (cable.b, cable.rate), (cable.a, cable.rate)
    return ends


def find_discovery_root(devices: Mapping[str, DiscoveredDevice], ends: PeerPorts) -> str:
    """Return the GUID of the switch with the most links, the first of several: the discovery starts there."""
    count = dict.fromkeys((guid for guid, device in devices.items() if device.kind == "switch"), 0)
    for port in ends:
        if port.guid in count:
            count[port.guid] += 1
    return max(count, key=lambda guid: count[guid])


def format_net_file(devices: Mapping[str, DiscoveredDevice], cables: Iterable[DiscoveredCable]) -> str:
    """Return the fabric in ibnetdiscover's format, which ibsim reads. The root is first: tools attach to it."""
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
    guid, letter = device.guid[2:], LETTER[device.kind]
    if device.kind == "hca":
        kind = [f"caguid=0x{guid}", f'Ca\t{device.ports} "{letter}-{guid}"\t\t# "{device.description}"']
    else:
        comment = f'# "{device.description}" enhanced port 0 lid 0 lmc 0'
        kind = [f"switchguid=0x{guid}({guid})", f'Switch\t{device.ports} "{letter}-{guid}"\t\t{comment}']
    head = ["vendid=0x2c9", f"devid={DEVICE_ID[device.kind]}", f"sysimgguid={device.system or device.guid}"]
    return "\n".join([*head, *kind, *lines, ""])


def _port_guid(device: DiscoveredDevice, port: PortId) -> str:
    """Return the port's GUID in parentheses: in ibsim the device's GUID plus the port number; "" for a switch."""
    return f"({int(device.guid, 16) + port.number:x})" if device.kind == "hca" else ""


def load_recording(design: str) -> str:
    """Return the recorded discovery of a design. Raises AssayError if there is none."""
    file = resources.files("assay.lab") / "recordings" / f"{design}.txt"
    if not file.is_file():
        raise AssayError(f"the lab has no recorded discovery of the fabric {design}", fix=f"install {PACKAGES}")
    return file.read_text()


def replay_discovery(now: LabCabling, links: list[DiscoveredCable]) -> str:
    """Return the discovery that the real tools would print.

    Raises AssayError if there is no recording of the design, or if it was made of another cabling.
    """
    text = load_recording(now.design)
    recorded = {(frozenset((a, b)), rate) for a, b, rate in parse(text).cables}
    if recorded != {(frozenset((a, b)), rate) for a, b, rate in now.designed_cables}:
        raise AssayError(
            f"the recorded discovery of the fabric {now.design} differs from the design",
            fix=f"install {PACKAGES}, or use them to record it again",
        )
    ends, designed = peer_ports(links), peer_ports(now.designed_cables)
    reached = _reachable_devices(find_discovery_root(now.devices, ends), ends)
    records = re.split(r"(?m)^(?=vendid=)", text)
    return records[0] + "".join(_replay_record(record, now, ends, designed, reached) for record in records[1:])


def _reachable_devices(start: str, ends: PeerPorts) -> set[str]:
    """Return the GUIDs of the devices reachable over links."""
    neighbours: dict[str, set[str]] = {}
    for here, (there, _) in ends.items():
        neighbours.setdefault(here.guid, set()).add(there.guid)
    reached, front = {start}, [start]
    while front:
        new = neighbours.get(front.pop(), set()) - reached
        reached |= new
        front += new
    return reached


def _replay_record(record: str, now: LabCabling, ends: PeerPorts, designed: PeerPorts, reached: set[str]) -> str:
    """Return one device's present record, "" for an unreachable device."""
    head, *_ = re.split(r"(?m)^(?=\[)", record, maxsplit=1)
    device = DEVICE.search(head)
    assert device is not None, "each record of the recording has a device"
    guid = f"0x{device[3]}"
    if guid not in reached:
        return ""
    recorded = {int(found[1]): line for line in record.splitlines() if (found := PORT.match(line))}
    ports = sorted(port for port in ends if port.guid == guid)
    lines = [
        recorded[port.number] if ends[port] == designed.get(port) else format_port_line(now.devices, port, *ends[port])
        for port in ports
    ]
    return head.rstrip("\n") + "\n" + "".join(f"{line}\n" for line in lines) + "\n"


def discover_lab_fabric(world: LabWorld, tools: ibsim.IbsimTools | None) -> tuple[str, str]:
    """Return the discovery and its stderr: from ibsim with `tools`, from the recording without.

    Raises AssayError if the lab has no fabric, or if ibsim or the replay fails.
    """
    now = load_cabling(world)
    links = find_links(world, now)
    if tools is None:
        return replay_discovery(now, links), ""
    switches = sum(device.kind == "switch" for device in now.devices.values())
    return ibsim.run_ibnetdiscover(tools, format_net_file(now.devices, links), len(now.devices), switches)


def main(arguments: list[str]) -> int:
    """Print the discovery as ibnetdiscover would. Return 1, with the reason on stderr, if it fails; 2 on misuse."""
    if len(arguments) != 1:
        print("usage: python -m assay.lab.fabric.ibnetdiscover LABDIR", file=sys.stderr)  # noqa: T201
        return 2
    try:
        out, err = discover_lab_fabric(LabWorld(Path(arguments[0])), ibsim.find_ibsim_tools())
    except AssayError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    sys.stdout.write(out)
    sys.stderr.write(err)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
