"""The lab's cables: which plug is in which port, and the hands that change it.

`LAB/fabric.json` holds the devices, the cables as designed and the cables as they are. An end is written
`n0005/mlx5_3` for an adapter, `leaf-su01-r0[33]` for a switch's port. A link also needs both of its devices: an
adapter whose node's state says that the port is not ACTIVE has a cable and no link, and one that says a lower
`rate_gbps` is as slow as that.
"""

from __future__ import annotations

import fcntl
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice
from assay.lab.fabric import ibsim
from assay.lab.world import LabWorld, write_json
from assay.model.errors import AssayError
from assay.model.fabric.ports_and_cables import PortId

if TYPE_CHECKING:
    from assay.fabric.topology.compiled_topology import CompiledTopology

SLOWER = {200: "4xHDR", 100: "4xEDR", 50: "1xHDR"}
"""The rate of a link by what its adapter says in Gb/s, where that is less than designed."""


@dataclass
class LabCabling:
    """Everything about the lab's fabric. Cables that have no link are in `cables` too; see `find_links`."""

    design: str
    devices: dict[str, DiscoveredDevice]
    designed_cables: list[DiscoveredCable]
    cables: list[DiscoveredCable]

    def port(self, end: str) -> PortId:
        """Return the port that `end` writes. Raises Trouble for a device that is not there."""
        name, number = re.fullmatch(r"(.*?)(?:\[(\d+)\])?", end).groups()  # type: ignore[union-attr]
        for device in self.devices.values():
            if device.name == name.replace("/", " ", 1):
                return PortId(device.guid, int(number or 1))
        raise AssayError(f"the lab's fabric has no {name!r}", fix="write an end as n0005/mlx5_3 or leaf-su01-r0[33]")

    def unplug(self, port: PortId) -> DiscoveredCable | None:
        """Take away the cable at a port and return it."""
        for cable in self.cables:
            if port in (cable.a, cable.b):
                self.cables.remove(cable)
                return cable
        return None


def discovery_mode() -> str:
    """Return where discoveries come from: `ibsim` (with the real ibnetdiscover) or `recorded`."""
    return "ibsim" if ibsim.find_ibsim_tools() else "recorded"


def describe_discovery() -> str:
    """Say in words where discoveries come from."""
    if discovery_mode() == "ibsim":
        return "ibsim with the real ibnetdiscover (ibsim cannot speak NDR: it is told one speed less, put right after)"
    return f"a discovery recorded from ibsim and ibnetdiscover, which are not installed here ({ibsim.PACKAGES})"


def lay_cables(world: LabWorld, plan: CompiledTopology) -> None:
    """Cable the lab as designed."""
    devices = {
        one.guid: DiscoveredDevice(one.guid, one.kind, one.ports, one.description) for one in plan.devices.values()
    }
    cables = [DiscoveredCable(cable.a.port_id, cable.b.port_id, cable.rate) for cable in plan.cables]
    _write_cabling(world, LabCabling(plan.name, devices, cables, list(cables)))


def load_cabling(world: LabWorld) -> LabCabling:
    """Return the cables as they are. Raises Trouble where none were laid."""
    try:
        plain = json.loads((world.home / "fabric.json").read_text())
    except OSError as error:
        raise AssayError("the lab has no fabric", where=str(world.home), fix="start it with assay lab up") from error
    devices = {guid: DiscoveredDevice(guid, *rest) for guid, *rest in plain["devices"]}
    return LabCabling(plain["design"], devices, _cables(plain["designed"]), _cables(plain["cables"]))


def find_links(world: LabWorld, now: LabCabling) -> list[DiscoveredCable]:
    """Return the cables that carry a link now, at the rate it has."""
    rates = {hca["guid"]: hca for node in world.nodes() for hca in world.load(node).get("hcas", ())}
    down = {guid for guid, hca in rates.items() if hca["state"] != "ACTIVE"}
    up = [cable for cable in now.cables if not {cable.a.guid, cable.b.guid} & down]
    return [cable._replace(rate=_slowest(cable, rates)) for cable in up]


def swap_cables(world: LabWorld, end_a: str, end_b: str) -> None:
    """Exchange the plugs in two ports. Doing it again repairs it."""
    with _change_cabling(world) as now:
        a, b = now.port(end_a), now.port(end_b)
        for here, there, cable in [(a, b, now.unplug(a)), (b, a, now.unplug(b))]:
            if cable:
                now.cables.append(_replug(cable, here, there))


def move_cable(world: LabWorld, end: str, to: str) -> None:
    """Put the plug in port `end` into the port `to`, whose own plug, if any, comes out."""
    with _change_cabling(world) as now:
        here, there = now.port(end), now.port(to)
        now.unplug(there)
        if cable := now.unplug(here):
            now.cables.append(_replug(cable, here, there))


def unplug_cable(world: LabWorld, end: str) -> None:
    """Take the cable at `end` away."""
    with _change_cabling(world) as now:
        now.unplug(now.port(end))


def slow_cable(world: LabWorld, end: str, rate: str) -> None:
    """Let the cable at `end` come up at `rate` (`4xHDR`) only."""
    with _change_cabling(world) as now:
        if cable := now.unplug(now.port(end)):
            now.cables.append(cable._replace(rate=rate))


def repair_cabling(world: LabWorld) -> None:
    """Cable everything as designed."""
    with _change_cabling(world) as now:
        now.cables = list(now.designed_cables)


def _replug(cable: DiscoveredCable, here: PortId, there: PortId) -> DiscoveredCable:
    return cable._replace(a=there) if cable.a == here else cable._replace(b=there)


def _slowest(cable: DiscoveredCable, hcas: dict[str, dict[str, Any]]) -> str:
    said = [hcas[port.guid]["rate_gbps"] for port in (cable.a, cable.b) if port.guid in hcas]
    return SLOWER.get(min(said, default=0), cable.rate)


@contextmanager
def _change_cabling(world: LabWorld) -> Iterator[LabCabling]:
    """Yield the wiring to change; one pair of hands at a time."""
    with (world.home / "fabric.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        now = load_cabling(world)
        yield now
        _write_cabling(world, now)


def _write_cabling(world: LabWorld, now: LabCabling) -> None:
    plain = {
        "design": now.design,
        "devices": [list(device) for device in now.devices.values()],
        "designed": [[*cable.a, *cable.b, cable.rate] for cable in now.designed_cables],
        "cables": [[*cable.a, *cable.b, cable.rate] for cable in now.cables],
    }
    write_json(world.home / "fabric.json", plain)


def _cables(plain: list[list[Any]]) -> list[DiscoveredCable]:
    return [DiscoveredCable(PortId(ga, pa), PortId(gb, pb), rate) for ga, pa, gb, pb, rate in plain]
