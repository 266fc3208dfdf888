r"""Reads the topology of an NVLink domain, as NVIDIA's NMX Controller reports it (gRPC `GetTopologyInfo`, as JSON).

```
file   = { "device_topo_info": [ { "gpu_topo_info": device } | { "switch_topo_info": device } ] }
device = { "device_uid": n, "device_id": n, "loc": { "tray_index": n }, "port_topo_info": [ port ] }
port   = { "port_num": n, "physical_state": state, "peer_port_device_uid": n, "peer_port_num": n }
state  = "NMX_PORT_PHYS_STATE_LINKUP" | …
```

Names may be in camel case (`deviceTopoInfo`), and numbers in quotes, as printers of JSON write them; a number that is
missing is 0. Read are the fields above, `logical_state`, `link_rate_mbps`, and the chassis of `loc`.

A device is known by its place: the index of its tray, and `device_id` (from 0 or 1: from 0 if any device of its kind
has 0). A link stands at both of its ends. Ports are numbered by the device at the other end (`nvlink_domain.py`); the
port's own number is its label.

Not known: the ports of a device that is not listed, where a port without a link should lead, and rates other than those
of NVLink 5 (`link_rate_mbps`, whose unit the protocol does not say). Ports of other kinds (to managers, trunks of
several racks) are not designed. One document is one rack: several chassis are a problem.
Source: NVIDIA infra-controller, `nmx_c.proto` (Apache 2.0).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice, FabricDiscovery, LocalProblem, PortFacts
from assay.fabric.readers.link_end_matching import PortEnds, check_has_cables, join_ends
from assay.fabric.readers.tool_text import find_stderr_problems, load_json
from assay.model.specs.fabric.cable import PortId
from assay.model.specs.fabric.nvlink_domain import NvlinkKind, NvlinkPlace, find_nvlink_place

DEVICES: dict[str, NvlinkKind] = {"gpu_topo_info": "gpu", "switch_topo_info": "asic"}
RATES = {400_000: "2xXDR", 200_000: "1xXDR"}
"""`link_rate_mbps` as Mbit/s of one direction: NVLink 5 has two lanes of 200 Gbit/s. Other values are not known."""
STATES = {"STATE_DOWN": "down", "STATE_INIT": "init", "STATE_ARMED": "armed", "STATE_ACTIVE": "active"}
UNDESIGNED_PORTS = 1000
"""Ports that lead where no design leads them are numbered from here on, by their own number."""


class ListedDevice(NamedTuple):
    """A device of the document: its UID, its place, and the document's part about it."""

    uid: int
    place: NvlinkPlace
    chassis: str
    ports: list[dict[str, Any]]


def parse(text: str, stderr: str = "") -> FabricDiscovery:
    """Read a domain. Never raises: `problems` names what cannot be read."""
    problems = find_stderr_problems(stderr)
    notes: list[str] = []
    devices = _place(list(_list_devices(load_json(text, problems, notes), problems)), problems)
    if len(racks := {device.chassis for device in devices}) > 1:
        problems.append(f"these are {len(racks)} chassis: {', '.join(sorted(racks))}; only one rack can be read")
    places = {device.uid: device.place for device in devices}
    ends: PortEnds = {}
    states: dict[PortId, str] = {}
    for device in devices:
        for port in device.ports:
            _read_port(device, port, places, ends, states, problems)
    known = {
        place.guid: DiscoveredDevice(place.guid, "hca" if place.kind == "gpu" else "switch", 0, place.description)
        for place in places.values()
    }
    seen = join_ends(ends, known, problems)
    cables, facts = _number_by_far_end(seen, states)
    return FabricDiscovery(cables, known, tuple(check_has_cables(cables, problems)), facts, notes=tuple(notes))


def _field(entry: Any, name: str) -> Any:
    """Return a field by its name in the protocol, also if it is written in camel case."""
    if not isinstance(entry, dict):
        return None
    return entry.get(name, entry.get(re.sub("_([a-z])", lambda match: match[1].upper(), name)))


def _number(entry: Any, name: str) -> int:
    """Return a number, 0 where there is none: printers of JSON leave zeros out."""
    match = re.fullmatch("[0-9]{1,20}", str(_field(entry, name)))
    return int(match[0]) if match else 0


def _list_devices(document: Any, problems: list[str]) -> Iterator[ListedDevice]:
    listed = _field(document, "device_topo_info")
    if isinstance(listed, dict):  # as in a report of the whole state
        listed = _field(listed, "device_topo_info")
    for number, entry in enumerate(listed if isinstance(listed, list) else [], start=1):
        name, device = next(((name, part) for name in DEVICES if (part := _field(entry, name))), ("", None))
        if not name or not _number(device, "device_uid"):
            problems.append(f"device {number} is no GPU or switch with a `device_uid`")
            continue
        where, ports = _field(device, "loc"), _field(device, "port_topo_info")
        place = NvlinkPlace(DEVICES[name], _number(where, "tray_index"), _number(device, "device_id"))
        chassis = str(_field(where, "chassis_serial_number") or "")
        yield ListedDevice(_number(device, "device_uid"), place, chassis, ports if isinstance(ports, list) else [])


def _place(devices: Sequence[ListedDevice], problems: list[str]) -> list[ListedDevice]:
    """Return the devices with numbers from 1. One in a place that is taken is a problem, and left out."""
    counted_from_0 = {device.place.kind for device in devices if device.place.device == 0}
    placed: dict[NvlinkPlace, ListedDevice] = {}
    for device in devices:
        place = device.place
        if place.kind in counted_from_0:
            place = place._replace(device=place.device + 1)
        if place in placed or max(place.tray, place.device) > 0xFF:
            problems.append(f"{place.description} is listed twice, or has no number that a place has")
        else:
            placed[place] = device._replace(place=place)
    return list(placed.values())


def _read_port(
    device: ListedDevice,
    port: dict[str, Any],
    places: dict[int, NvlinkPlace],
    ends: PortEnds,
    states: dict[PortId, str],
    problems: list[str],
) -> None:
    """Add a port that is up, by the number that it has itself."""
    peer = _number(port, "peer_port_device_uid")
    if not str(_field(port, "physical_state")).endswith("LINKUP") or not peer:
        return
    here = PortId(device.place.guid, _number(port, "port_num"))
    if peer not in places:
        problems.append(
            LocalProblem(f"port {here.number} of {device.place.description} leads to an unlisted device", here.guid)
        )
        return
    rate = RATES.get(_number(port, "link_rate_mbps"), "")
    ends[here] = (PortId(places[peer].guid, _number(port, "peer_port_num")), rate)
    logical_state = str(_field(port, "logical_state"))
    states[here] = next((state for name, state in STATES.items() if logical_state.endswith(name)), "")


def _number_by_far_end(
    seen: Sequence[DiscoveredCable], states: dict[PortId, str]
) -> tuple[list[DiscoveredCable], dict[PortId, PortFacts]]:
    """Return the links, each port with the number of the device at the other end, and the facts of these ports."""
    cables: list[DiscoveredCable] = []
    facts: dict[PortId, PortFacts] = {}
    for cable in sorted(seen):
        a, b = _renumber(cable.a, cable.b), _renumber(cable.b, cable.a)
        if a in facts or b in facts:  # a second link between the two
            a, b = (port._replace(number=UNDESIGNED_PORTS + port.number) for port in cable[:2])
        cables.append(DiscoveredCable(a, b, cable.rate))
        for port, own in ((a, cable.a), (b, cable.b)):
            facts[port] = PortFacts(port, states.get(own, ""), "linkup", rate=cable.rate, label=str(own.number))
    return cables, facts


def _renumber(own: PortId, far: PortId) -> PortId:
    here, there = find_nvlink_place(own.guid), find_nvlink_place(far.guid)
    if here and there and here.kind != there.kind:
        return PortId(own.guid, there.number)
    return PortId(own.guid, UNDESIGNED_PORTS + own.number)
