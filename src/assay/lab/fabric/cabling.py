"""The lab's cables, of all its fabrics: designed ones, present ones, changes to them. LAB/fabric.json stores them.

A cable end is written `n0005/mlx5_3` for an adapter and `leaf-su01-r0[33]` for a switch port. A cable carries a link
only if the node's state has the adapter's port ACTIVE; a lower `rate_gbps` there slows the link.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice
from assay.fabric.link_words import ETHERNET, find_slowest_rate, parse_rate
from assay.lab.virtual_node_state import write_json
from assay.lab.world import LabWorld
from assay.ledger.file_locks import hold_file_lock
from assay.model.errors import AssayError
from assay.model.specs.fabric.cable import PortId

if TYPE_CHECKING:
    from assay.fabric.design.compiled_topology import CompiledTopology

SLOWER = {200: "4xHDR", 100: "4xEDR", 50: "1xHDR"}
"""Gb/s of an adapter → rate of its link, for rates below the designed one."""


@dataclass
class LabCabling:
    """The lab's fabrics. `devices` by GUID. `cables` are the present ones, also those without a link (`find_links`).

    `splits`: in how many parts the cages of switches are, by GUID, where a design says so.
    """

    devices: dict[str, DiscoveredDevice]
    designed_cables: list[DiscoveredCable]
    cables: list[DiscoveredCable]
    splits: dict[str, int] = field(default_factory=dict)

    @property
    def is_ethernet(self) -> bool:
        """Whether all of it is Ethernet, by its rates."""
        return bool(self.designed_cables) and all(map(_is_ethernet, self.designed_cables))

    def port(self, end: str) -> PortId:
        """Return the port of a cable end. Raises AssayError for an unknown device."""
        name, number = re.fullmatch(r"(.*?)(?:\[(\d+)\])?", end).groups()  # type: ignore[union-attr]
        for device in self.devices.values():
            if device.name == name.replace("/", " ", 1):
                return PortId(device.guid, int(number or 1))
        raise AssayError(f"the lab's fabric has no {name!r}", fix="name an end as n0005/mlx5_3 or leaf-su01-r0[33]")

    def unplug(self, port: PortId) -> DiscoveredCable | None:
        """Remove the cable at a port and return it."""
        for cable in self.cables:
            if port in (cable.a, cable.b):
                self.cables.remove(cable)
                return cable
        return None

    def around(self, node: str) -> LabCabling:
        """Return the fabric of a node: what its designed cables lead to. All fabrics for the name ""."""
        own = [guid for guid, device in self.devices.items() if not node or device.name.partition(" ")[0] == node]
        reached = find_reachable_devices(own, self.designed_cables)
        devices = {guid: device for guid, device in self.devices.items() if guid in reached}
        designed, present = (
            [cable for cable in cables if cable.a.guid in reached] for cables in (self.designed_cables, self.cables)
        )
        return LabCabling(devices, designed, present, self.splits)


def find_reachable_devices(start: Iterable[str], cables: Iterable[DiscoveredCable]) -> set[str]:
    """Return the GUIDs of the devices that cables join to those of `start`, and these."""
    neighbours: dict[str, set[str]] = {}
    for cable in cables:
        neighbours.setdefault(cable.a.guid, set()).add(cable.b.guid)
        neighbours.setdefault(cable.b.guid, set()).add(cable.a.guid)
    reached = set(start)
    front = list(start)
    while front:
        new = neighbours.get(front.pop(), set()) - reached
        reached |= new
        front += new
    return reached


def lay_cables(world: LabWorld, *plans: CompiledTopology) -> None:
    """Cable the lab's fabrics as designed."""
    devices = {
        device.guid: DiscoveredDevice(device.guid, device.kind, device.ports, device.description)
        for plan in plans
        for device in plan.devices.values()
    }
    cables = [DiscoveredCable(cable.a.port_id, cable.b.port_id, cable.rate) for plan in plans for cable in plan.cables]
    splits = {device.guid: device.labels.split for plan in plans for device in plan.devices.values() if device.labels}
    splits = {guid: split for guid, split in splits.items() if split > 1}
    _write_cabling(world, LabCabling(devices, cables, list(cables), splits))


def load_cabling(world: LabWorld, node: str = "") -> LabCabling:
    """Return the present cables of a node's fabric, or of all fabrics. Raises AssayError if there is none."""
    try:
        text = (world.home / "fabric.json").read_text()
    except OSError as error:
        raise AssayError("the lab has no fabric", where=str(world.home), fix="run: assay lab up") from error
    known = _parse_cabling(text).around(node)
    if not known.devices:
        raise AssayError(f"no fabric of the lab leads to {node}", where=str(world.home / "fabric.json"))
    return known


@lru_cache(maxsize=1)
def _parse_cabling(text: str) -> LabCabling:
    """Read the text of LAB/fabric.json. Each scan loads the same text several times."""
    plain = json.loads(text)
    devices = {guid: DiscoveredDevice(guid, *rest) for guid, *rest in plain["devices"]}
    return LabCabling(devices, _cables(plain["designed"]), _cables(plain["cables"]), plain.get("splits", {}))


def list_neighbours(world: LabWorld, node: str) -> set[str]:
    """Return the nodes of a node's fabric, none for a node without one."""
    try:
        return {device.name.partition(" ")[0] for device in load_cabling(world, node).devices.values()}
    except AssayError:
        return set()


def has_ethernet(world: LabWorld, node: str) -> bool:
    """Return whether the fabric of a node is Ethernet."""
    try:
        return load_cabling(world, node).is_ethernet
    except AssayError:
        return False


def find_links(world: LabWorld, now: LabCabling) -> list[DiscoveredCable]:
    """Return the cables that carry a link, with its present rate."""
    hcas = {hca["guid"]: hca for node in world.nodes() for hca in world.load(node).get("hcas", ())}
    links = []
    for cable in now.cables:
        ends = [hcas[port.guid] for port in (cable.a, cable.b) if port.guid in hcas]
        if all(hca["state"] == "ACTIVE" for hca in ends):
            slowest = min((hca["rate_gbps"] for hca in ends), default=0)
            slower = f"{slowest}G" if slowest and _is_ethernet(cable) else SLOWER.get(slowest, cable.rate)
            links.append(cable._replace(rate=find_slowest_rate(slower, cable.rate) or cable.rate))
    return links


def _is_ethernet(cable: DiscoveredCable) -> bool:
    rate = parse_rate(cable.rate)
    return rate is not None and rate.speed == ETHERNET


def swap_cables(world: LabWorld, end_a: str, end_b: str) -> None:
    """Swap the plugs of two ports. A second swap repairs it."""
    with _change_cabling(world) as now:
        port_a = now.port(end_a)
        port_b = now.port(end_b)
        for here, there, cable in [(port_a, port_b, now.unplug(port_a)), (port_b, port_a, now.unplug(port_b))]:
            if cable:
                now.cables.append(cable._replace(a=there) if cable.a == here else cable._replace(b=there))


def unplug_cable(world: LabWorld, end: str) -> None:
    """Remove the cable at `end`."""
    with _change_cabling(world) as now:
        now.unplug(now.port(end))


def slow_cable(world: LabWorld, end: str, rate: str) -> None:
    """Limit the cable at `end` to `rate`, such as `4xHDR`."""
    with _change_cabling(world) as now:
        if cable := now.unplug(now.port(end)):
            now.cables.append(cable._replace(rate=rate))


def replace_devices(world: LabWorld, guids: Mapping[str, str]) -> None:
    """Put other devices in the place of some, with the same cables. `guids`: GUID before → after."""
    if not (world.home / "fabric.json").exists() or all(old == new for old, new in guids.items()):
        return
    with _change_cabling(world) as now:
        devices = [device._replace(guid=guids.get(guid, guid)) for guid, device in now.devices.items()]
        now.devices = {device.guid: device for device in devices}
        for cables in (now.cables, now.designed_cables):
            for place, cable in enumerate(cables):
                a, b = (PortId(guids.get(end.guid, end.guid), end.number) for end in (cable.a, cable.b))
                cables[place] = DiscoveredCable(a, b, cable.rate)


def repair_cabling(world: LabWorld) -> None:
    """Restore the designed cables."""
    with _change_cabling(world) as now:
        now.cables = list(now.designed_cables)


@contextmanager
def _change_cabling(world: LabWorld) -> Iterator[LabCabling]:
    """Yield the cabling to edit, under a lock; a clean exit writes it."""
    with hold_file_lock(world.home / "fabric.lock"):
        now = load_cabling(world)
        yield now
        _write_cabling(world, now)


def _write_cabling(world: LabWorld, now: LabCabling) -> None:
    plain = {
        "devices": [list(device) for device in now.devices.values()],
        "designed": [[*cable.a, *cable.b, cable.rate] for cable in now.designed_cables],
        "cables": [[*cable.a, *cable.b, cable.rate] for cable in now.cables],
        "splits": now.splits,
    }
    write_json(world.home / "fabric.json", plain)


def _cables(plain: list[list[Any]]) -> list[DiscoveredCable]:
    return [DiscoveredCable(PortId(ga, pa), PortId(gb, pb), rate) for ga, pa, gb, pb, rate in plain]
