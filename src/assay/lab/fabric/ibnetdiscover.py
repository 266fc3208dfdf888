"""A recorded discovery of the lab's design, with what hands did since applied to it.

Stands in for ibsim where that is not installed. The recording was printed by the real ibnetdiscover; its lines
are kept as they are for every port whose link is as designed, other lines are left out or written in their form,
and devices that the discovery would no longer reach are left out whole.

Writes a fabric the way ibnetdiscover prints it, which is also what ibsim reads.

`python -m assay.lab.fabric.ibnetdiscover LABDIR`: what ibnetdiscover says about the lab's fabric as it is cabled now.

A private ibsim is loaded with the lab's cabling and the real ibnetdiscover run on it (see `assay.lab.fabric.ibsim` for the one
thing that is translated); where those are not installed, a recorded discovery is replayed with the changes.
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
"""Quantum-2 and ConnectX-7 (PCI ids database)."""


def peer_ports(cables: Iterable[DiscoveredCable]) -> PeerPorts:
    """Return each port's other end and the rate."""
    ends: PeerPorts = {}
    for cable in cables:
        ends[cable.a], ends[cable.b] = (cable.b, cable.rate), (cable.a, cable.rate)
    return ends


def find_discovery_root(devices: Mapping[str, DiscoveredDevice], ends: PeerPorts) -> str:
    """Return the GUID to look from: the first switch among those with the most links."""
    count = dict.fromkeys((guid for guid, device in devices.items() if device.kind == "switch"), 0)
    for port in ends:
        if port.guid in count:
            count[port.guid] += 1
    return max(count, key=lambda guid: count[guid])


def format_net_file(devices: Mapping[str, DiscoveredDevice], cables: Iterable[DiscoveredCable]) -> str:
    """Return the whole file, the centre first, since tools attach to the first record."""
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
    """Return the line of one port, in the form of its device's kind."""
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
        said = f'# "{device.description}" enhanced port 0 lid 0 lmc 0'
        kind = [f"switchguid=0x{guid}({guid})", f'Switch\t{device.ports} "{letter}-{guid}"\t\t{said}']
    head = ["vendid=0x2c9", f"devid={DEVICE_ID[device.kind]}", f"sysimgguid=0x{guid}"]
    return "\n".join([*head, *kind, *lines, ""])


def _port_guid(device: DiscoveredDevice, port: PortId) -> str:
    """An adapter's port has the next GUID in ibsim; a switch's ports have none."""
    return f"({int(device.guid, 16) + port.number:x})" if device.kind == "hca" else ""


def load_recording(design: str) -> str:
    """Return the recorded discovery of a design. Raises Trouble where there is none."""
    file = resources.files("assay.lab") / "recordings" / f"{design}.txt"
    if not file.is_file():
        raise AssayError(f"the lab has no recorded discovery of the fabric {design}", fix=f"install {PACKAGES}")
    return file.read_text()


def replay_discovery(now: LabCabling, links: list[DiscoveredCable]) -> str:
    """Return the discovery that the real tools would print. Raises Trouble for a recording of another cabling."""
    text = load_recording(now.design)
    recorded = {(frozenset((a, b)), rate) for a, b, rate in parse(text).cables}
    if recorded != {(frozenset((a, b)), rate) for a, b, rate in now.designed_cables}:
        raise AssayError(
            f"the recorded discovery of the fabric {now.design} is of another cabling than the design's",
            fix=f"install {PACKAGES}; or record it again with them",
        )
    ends, designed = peer_ports(links), peer_ports(now.designed_cables)
    reached = _reachable_devices(find_discovery_root(now.devices, ends), ends)
    records = re.split(r"(?m)^(?=vendid=)", text)
    return records[0] + "".join(_replay_record(record, now, ends, designed, reached) for record in records[1:])


def _reachable_devices(start: str, ends: PeerPorts) -> set[str]:
    """Return the devices that can be reached over links."""
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
    """Return one device's record as it reads now, nothing for a device out of reach."""
    head, *_ = re.split(r"(?m)^(?=\[)", record, maxsplit=1)
    device = DEVICE.search(head)
    assert device is not None, "every record of our recordings names its device"
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
    """Return the discovery and its stderr, by ibsim with `tools`, by replay without. Raises Trouble."""
    now = load_cabling(world)
    up = find_links(world, now)
    if tools is None:
        return replay_discovery(now, up), ""
    switches = sum(device.kind == "switch" for device in now.devices.values())
    return ibsim.run_ibnetdiscover(tools, format_net_file(now.devices, up), len(now.devices), switches)


def main(arguments: list[str]) -> int:
    """Print the discovery as ibnetdiscover would; exit code 1 with a reason on stderr where there is none."""
    if len(arguments) != 1:
        print("usage: python -m assay.lab.fabric.ibnetdiscover LABDIR", file=sys.stderr)  # noqa: T201
        return 2
    try:
        out, err = discover_lab_fabric(LabWorld(Path(arguments[0])), ibsim.find_ibsim_tools())
    except AssayError as trouble:
        print(trouble, file=sys.stderr)  # noqa: T201
        return 1
    sys.stdout.write(out)
    sys.stderr.write(err)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
