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

from assay.fabric.discovery import FoundCable, FoundDevice
from assay.lab import ibsim
from assay.lab.world import World, write_json
from assay.model.cable import Port
from assay.model.errors import Trouble

if TYPE_CHECKING:
    from assay.fabric.design import Plan

SLOWER = {200: "4xHDR", 100: "4xEDR", 50: "1xHDR"}
"""The rate of a link by what its adapter says in Gb/s, where that is less than designed."""


@dataclass
class Wiring:
    """Everything about the lab's fabric. Cables that have no link are in `cables` too; see `links`."""

    design: str
    devices: dict[str, FoundDevice]
    designed: list[FoundCable]
    cables: list[FoundCable]

    def port(self, end: str) -> Port:
        """Return the port that `end` writes. Raises Trouble for a device that is not there."""
        name, number = re.fullmatch(r"(.*?)(?:\[(\d+)\])?", end).groups()  # type: ignore[union-attr]
        for device in self.devices.values():
            if device.name == name.replace("/", " ", 1):
                return Port(device.guid, int(number or 1))
        raise Trouble(f"the lab's fabric has no {name!r}", fix="write an end as n0005/mlx5_3 or leaf-su01-r0[33]")

    def unplug(self, port: Port) -> FoundCable | None:
        """Take away the cable at a port and return it."""
        for cable in self.cables:
            if port in (cable.a, cable.b):
                self.cables.remove(cable)
                return cable
        return None


def mode() -> str:
    """Return where discoveries come from: `ibsim` (with the real ibnetdiscover) or `recorded`."""
    return "ibsim" if ibsim.installed() else "recorded"


def describe() -> str:
    """Say in words where discoveries come from."""
    if mode() == "ibsim":
        return "ibsim with the real ibnetdiscover (ibsim cannot speak NDR: it is told one speed less, put right after)"
    return f"a discovery recorded from ibsim and ibnetdiscover, which are not installed here ({ibsim.PACKAGES})"


def lay(world: World, plan: Plan) -> None:
    """Cable the lab as designed."""
    devices = {one.guid: FoundDevice(one.guid, one.kind, one.ports, one.description) for one in plan.devices.values()}
    cables = [FoundCable(cable.a.at, cable.b.at, cable.rate) for cable in plan.cables]
    _write(world, Wiring(plan.name, devices, cables, list(cables)))


def wiring(world: World) -> Wiring:
    """Return the cables as they are. Raises Trouble where none were laid."""
    try:
        plain = json.loads((world.home / "fabric.json").read_text())
    except OSError as error:
        raise Trouble("the lab has no fabric", where=str(world.home), fix="start it with assay lab up") from error
    devices = {guid: FoundDevice(guid, *rest) for guid, *rest in plain["devices"]}
    return Wiring(plain["design"], devices, _cables(plain["designed"]), _cables(plain["cables"]))


def links(world: World, now: Wiring) -> list[FoundCable]:
    """Return the cables that carry a link now, at the rate it has."""
    rates = {hca["guid"]: hca for node in world.nodes() for hca in world.load(node).get("hcas", ())}
    down = {guid for guid, hca in rates.items() if hca["state"] != "ACTIVE"}
    up = [cable for cable in now.cables if not {cable.a.guid, cable.b.guid} & down]
    return [cable._replace(rate=_slowest(cable, rates)) for cable in up]


def swap(world: World, end_a: str, end_b: str) -> None:
    """Exchange the plugs in two ports. Doing it again repairs it."""
    with _hands(world) as now:
        a, b = now.port(end_a), now.port(end_b)
        for here, there, cable in [(a, b, now.unplug(a)), (b, a, now.unplug(b))]:
            if cable:
                now.cables.append(_replug(cable, here, there))


def move(world: World, end: str, to: str) -> None:
    """Put the plug in port `end` into the port `to`, whose own plug, if any, comes out."""
    with _hands(world) as now:
        here, there = now.port(end), now.port(to)
        now.unplug(there)
        if cable := now.unplug(here):
            now.cables.append(_replug(cable, here, there))


def unplug(world: World, end: str) -> None:
    """Take the cable at `end` away."""
    with _hands(world) as now:
        now.unplug(now.port(end))


def slow(world: World, end: str, rate: str) -> None:
    """Let the cable at `end` come up at `rate` (`4xHDR`) only."""
    with _hands(world) as now:
        if cable := now.unplug(now.port(end)):
            now.cables.append(cable._replace(rate=rate))


def repair(world: World) -> None:
    """Cable everything as designed."""
    with _hands(world) as now:
        now.cables = list(now.designed)


def _replug(cable: FoundCable, here: Port, there: Port) -> FoundCable:
    return cable._replace(a=there) if cable.a == here else cable._replace(b=there)


def _slowest(cable: FoundCable, hcas: dict[str, dict[str, Any]]) -> str:
    said = [hcas[port.guid]["rate_gbps"] for port in (cable.a, cable.b) if port.guid in hcas]
    return SLOWER.get(min(said, default=0), cable.rate)


@contextmanager
def _hands(world: World) -> Iterator[Wiring]:
    """Yield the wiring to change; one pair of hands at a time."""
    with (world.home / "fabric.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        now = wiring(world)
        yield now
        _write(world, now)


def _write(world: World, now: Wiring) -> None:
    plain = {
        "design": now.design,
        "devices": [list(device) for device in now.devices.values()],
        "designed": [[*cable.a, *cable.b, cable.rate] for cable in now.designed],
        "cables": [[*cable.a, *cable.b, cable.rate] for cable in now.cables],
    }
    write_json(world.home / "fabric.json", plain)


def _cables(plain: list[list[Any]]) -> list[FoundCable]:
    return [FoundCable(Port(ga, pa), Port(gb, pb), rate) for ga, pa, gb, pb, rate in plain]
