"""The `bmc` channel: what a BMC says about its node, as a tree of readings. Each branch fails alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from assay.model.reading import failed, value
from assay.observe.bmc_air import Air
from assay.observe.bmc_firmware import Firmware, read_firmware
from assay.observe.bmc_leaves import Resource, Tree, branch, health, leaf, once
from assay.observe.bmc_log import read_log
from assay.observe.bmc_parts import memory, processors
from assay.observe.bmc_power import Power
from assay.observe.bmc_sensors import sensors
from assay.observe.bmc_settings import bios, bios_pending, boot
from assay.observe.refusal import NotThere
from assay.observe.session import Session

Now = Callable[[], datetime]


def read_tree(bmc: Session, systems: Callable[[], list[Resource]], since: str, now: Now) -> Tree:
    """Return the tree of the channel `bmc`: the host's system first among `systems`, its log since the cursor `since`.

    `now` is our own time, to which the BMC's is held. Raises nothing: what could not be read says why.
    """
    look = _Look(bmc, systems, now)
    branch(look.manager)  # its version first: quirks may hang on it
    tree: Tree = {name: branch(read) for name, read in look.branches().items()}
    said = branch(lambda: read_log(bmc, look.system(), since))
    return {**tree, **(said if "events" in said else {"events": said, "event_log": said})}


class _Look:
    """One look at a BMC: what several branches need is read once."""

    def __init__(self, bmc: Session, systems: Callable[[], list[Resource]], now: Now) -> None:
        self.bmc, self.now = bmc, now
        self.systems = once(systems)
        self.manager = once(self._managing)
        self.chassis = once(lambda: self._linked("Chassis", "Chassis"))
        self.power = once(lambda: Power(bmc, self.chassis()))
        self.air = once(lambda: Air(bmc, self.chassis()))
        self.firmware: Callable[[], Firmware] = once(lambda: read_firmware(bmc))
        self.sensor = once(lambda: sensors(self._sensors()))

    def system(self) -> Resource:
        """Return the system that the node's operating system runs on."""
        return self.systems()[0]

    def branches(self) -> dict[str, Callable[[], Any]]:
        """Return what is read, by name, in the order of reading: first what is missed most when time runs out."""
        bmc, system = self.bmc, self.system
        return {
            "system": lambda: _system(system()),
            "manager": self._manager,
            "health": self._health,
            "psu": lambda: self.power().supplies(),
            "fan": lambda: self.air().fans(),
            "leak": lambda: self.air().leaks(),
            "redundancy": self._redundancy,
            "sensor": self._sensor,
            "power": self._power,
            "firmware": lambda: self.firmware().runs,
            "firmware_pending": lambda: self.firmware().waits,
            "processor": lambda: processors(bmc, self.systems()),
            "memory": lambda: memory(bmc, system()),
            "bios": lambda: bios(bmc, system()),
            "bios_pending": lambda: bios_pending(bmc, system()),
            "boot": lambda: boot(bmc, system()),
            "chassis": lambda: {"intrusion": leaf(self.chassis(), "PhysicalSecurity", "IntrusionSensor")},
            "task": self._tasks,
        }

    def _linked(self, link: str, kind: str) -> Resource:
        places = self.system().get("Links", {}).get(link, [])
        if not places:
            raise NotThere(f"the system links to no {kind}", where=self.bmc.where)
        return self.bmc.get(places[0]["@odata.id"])

    def _managing(self) -> Resource:
        """Return the manager, with what its clock is off by; whose quirks a BMC has may hang on its version."""
        before = self.now()
        found = self._linked("ManagedBy", "Manager")
        off = _clock_off(leaf(found, "DateTime"), before, self.now())
        self.bmc.learn(bmc_version=found.get("FirmwareVersion"))
        return {**found, "clock_off_s": off}

    def _manager(self) -> Tree:
        manager = self.manager()
        return {
            "version": leaf(manager, "FirmwareVersion"),
            "health": leaf(manager, "Status", "Health"),
            "clock_off_s": manager["clock_off_s"],
        }

    def _health(self) -> Tree:
        """Return area → health, each rolled up by the BMC from what is below it."""
        return {
            "system": branch(lambda: health(self.system())),
            "chassis": branch(lambda: health(self.chassis())),
            "power": branch(lambda: self.power().area()),
            "cooling": branch(lambda: self.air().area()),
            "processors": branch(lambda: health(self.system().get("ProcessorSummary") or {})),
            "memory": branch(lambda: health(self.system().get("MemorySummary") or {})),
        }

    def _redundancy(self) -> Tree:
        return {
            "psu": branch(lambda: self.power().redundancy()),
            "fan": branch(lambda: self.air().redundancy()),
        }

    def _sensor(self) -> Tree:
        """Return every sensor; `inlet_c` besides, since air that comes in is asked for by all."""
        found = branch(self.sensor)
        known = self.bmc.ways.inlet_sensor
        inlet = branch(lambda: self._by_name(known, "temperature", "c") if known else self.air().inlet())
        return {"inlet_c": inlet, **(found if "offline" in found else dict.fromkeys(_KINDS, found))}

    def _power(self) -> Tree:
        known = self.bmc.ways.power_sensor
        return self.power().drawn(self._by_name(known, "power", "w") if known else None)

    def _by_name(self, name: str, kind: str, unit: str) -> dict[str, Any]:
        one = self.sensor()[kind].get(name)
        if one is None:
            raise NotThere(f"the chassis has no sensor {name}", where=self.bmc.where)
        found: dict[str, Any] = one.get(unit, one)
        return found

    def _sensors(self) -> Iterator[Resource]:
        """Yield the sensors of every chassis that a system of this BMC sits in."""
        if "Sensors" not in self.chassis() or self.bmc.ways.readings == "thermal-power":
            yield from (*self.air().temperatures(), *self.power().voltages())
            return
        places = [one for system in self.systems() for one in system.get("Links", {}).get("Chassis", [])]
        for place in dict.fromkeys(one["@odata.id"] for one in places):
            box = self.chassis() if place == self.chassis().get("@odata.id") else self.bmc.get(place)
            if "Sensors" in box:
                yield from self.bmc.members(self.bmc.follow(box, "Sensors", 1))

    def _tasks(self) -> Tree:
        service = self.bmc.follow(self.bmc.root, "Tasks", 2, 1)
        found = self.bmc.members(self.bmc.follow(service, "Tasks", 1))
        return {
            str(one.get("Id")): {"state": leaf(one, "TaskState"), "status": leaf(one, "TaskStatus")} for one in found
        }


_KINDS = ("temperature", "voltage", "power", "offline")


def _system(system: Resource) -> Tree:
    return {
        "power": leaf(system, "PowerState"),
        "health": leaf(system, "Status", "Health"),
        "serial": leaf(system, "SerialNumber"),
        "model": leaf(system, "Model"),
        "bios_version": leaf(system, "BiosVersion"),
        "boot_progress": leaf(system, "BootProgress", "LastState"),
        "cpus": leaf(system, "ProcessorSummary", "Count"),
        "memory_gib": leaf(system, "MemorySummary", "TotalSystemMemoryGiB"),
    }


def _clock_off(said: dict[str, Any], before: datetime, after: datetime) -> dict[str, Any]:
    """Return the seconds that the BMC's clock is ahead of ours (behind: negative), less what asking itself took."""
    if "value" not in said:
        return said
    at = datetime.fromisoformat(said["value"])
    if at.tzinfo is None:
        return failed(f"the BMC's time {said['value']} names no zone")
    early, late = (at - before).total_seconds(), (at - after).total_seconds()
    if early < -1:  # it tells whole seconds
        return value(round(early, 1))
    return value(round(late, 1) if late > 0 else 0)


def our_time() -> datetime:
    """Return our own time."""
    return datetime.now(UTC)
