"""The `bmc` channel: what a BMC says about its node, as a tree of readings. Each branch fails alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from assay.model.reading import ReadingTree, failed, value
from assay.redfish.bios_boot_components import (
    read_bios,
    read_boot,
    read_memory_modules,
    read_pending_bios,
    read_processors,
)
from assay.redfish.errors import BmcResourceMissing
from assay.redfish.event_log import read_event_log
from assay.redfish.firmware_inventory import FirmwareInventory, read_firmware_inventory
from assay.redfish.power_cooling_sensors import ChassisCooling, ChassisPower, read_sensors
from assay.redfish.property_readings import Resource, read_branch, read_health, read_once, read_property
from assay.redfish.session import RedfishSession

UtcClock = Callable[[], datetime]


def read_bmc_tree(bmc: RedfishSession, systems: Callable[[], list[Resource]], since: str, now: UtcClock) -> ReadingTree:
    """Return the tree of the channel `bmc`: the host's system first among `systems`, its log since the cursor `since`.

    `now` is our own time, to which the BMC's is held. Raises nothing: what could not be read says why.
    """
    look = _BmcReader(bmc, systems, now)
    read_branch(look.manager)  # its version first: quirks may hang on it
    tree: ReadingTree = {name: read_branch(read) for name, read in look.branches().items()}
    said = read_branch(lambda: read_event_log(bmc, look.system(), since))
    return {**tree, **(said if "events" in said else {"events": said, "event_log": said})}


class _BmcReader:
    """One look at a BMC: what several branches need is read once."""

    def __init__(self, bmc: RedfishSession, systems: Callable[[], list[Resource]], now: UtcClock) -> None:
        self.bmc, self.now = bmc, now
        self.systems = read_once(systems)
        self.manager = read_once(self._managing)
        self.chassis = read_once(lambda: self._linked("Chassis", "Chassis"))
        self.power = read_once(lambda: ChassisPower(bmc, self.chassis()))
        self.air = read_once(lambda: ChassisCooling(bmc, self.chassis()))
        self.firmware: Callable[[], FirmwareInventory] = read_once(lambda: read_firmware_inventory(bmc))
        self.sensor = read_once(lambda: read_sensors(self._sensors()))

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
            "firmware": lambda: self.firmware().running,
            "firmware_pending": lambda: self.firmware().pending,
            "processor": lambda: read_processors(bmc, self.systems()),
            "memory": lambda: read_memory_modules(bmc, system()),
            "bios": lambda: read_bios(bmc, system()),
            "bios_pending": lambda: read_pending_bios(bmc, system()),
            "boot": lambda: read_boot(bmc, system()),
            "chassis": lambda: {"intrusion": read_property(self.chassis(), "PhysicalSecurity", "IntrusionSensor")},
            "task": self._tasks,
        }

    def _linked(self, link: str, kind: str) -> Resource:
        places = self.system().get("Links", {}).get(link, [])
        if not places:
            raise BmcResourceMissing(f"the system links to no {kind}", where=self.bmc.where)
        return self.bmc.get(places[0]["@odata.id"])

    def _managing(self) -> Resource:
        """Return the manager, with what its clock is off by; whose quirks a BMC has may hang on its version."""
        before = self.now()
        found = self._linked("ManagedBy", "Manager")
        off = _clock_off(read_property(found, "DateTime"), before, self.now())
        self.bmc.identify(bmc_version=found.get("FirmwareVersion"))
        return {**found, "clock_off_s": off}

    def _manager(self) -> ReadingTree:
        manager = self.manager()
        return {
            "version": read_property(manager, "FirmwareVersion"),
            "health": read_property(manager, "Status", "Health"),
            "clock_off_s": manager["clock_off_s"],
        }

    def _health(self) -> ReadingTree:
        """Return area → health, each rolled up by the BMC from what is below it."""
        return {
            "system": read_branch(lambda: read_health(self.system())),
            "chassis": read_branch(lambda: read_health(self.chassis())),
            "power": read_branch(lambda: self.power().read_health()),
            "cooling": read_branch(lambda: self.air().read_health()),
            "processors": read_branch(lambda: read_health(self.system().get("ProcessorSummary") or {})),
            "memory": read_branch(lambda: read_health(self.system().get("MemorySummary") or {})),
        }

    def _redundancy(self) -> ReadingTree:
        return {
            "psu": read_branch(lambda: self.power().redundancy()),
            "fan": read_branch(lambda: self.air().redundancy()),
        }

    def _sensor(self) -> ReadingTree:
        """Return every sensor; `inlet_c` besides, since air that comes in is asked for by all."""
        found = read_branch(self.sensor)
        known = self.bmc.dialect.inlet_sensor
        inlet = read_branch(lambda: self._by_name(known, "temperature", "c") if known else self.air().inlet())
        return {"inlet_c": inlet, **(found if "offline" in found else dict.fromkeys(_KINDS, found))}

    def _power(self) -> ReadingTree:
        known = self.bmc.dialect.power_sensor
        return self.power().read_draw(self._by_name(known, "power", "w") if known else None)

    def _by_name(self, name: str, kind: str, unit: str) -> dict[str, Any]:
        one = self.sensor()[kind].get(name)
        if one is None:
            raise BmcResourceMissing(f"the chassis has no sensor {name}", where=self.bmc.where)
        found: dict[str, Any] = one.get(unit, one)
        return found

    def _sensors(self) -> Iterator[Resource]:
        """Yield the sensors of every chassis that a system of this BMC sits in."""
        if "Sensors" not in self.chassis() or self.bmc.dialect.readings == "thermal-power":
            yield from (*self.air().temperatures(), *self.power().voltages())
            return
        places = [one for system in self.systems() for one in system.get("Links", {}).get("Chassis", [])]
        for place in dict.fromkeys(one["@odata.id"] for one in places):
            box = self.chassis() if place == self.chassis().get("@odata.id") else self.bmc.get(place)
            if "Sensors" in box:
                yield from self.bmc.members(self.bmc.follow(box, "Sensors", 1))

    def _tasks(self) -> ReadingTree:
        service = self.bmc.follow(self.bmc.root, "Tasks", 2, 1)
        found = self.bmc.members(self.bmc.follow(service, "Tasks", 1))
        return {
            str(one.get("Id")): {"state": read_property(one, "TaskState"), "status": read_property(one, "TaskStatus")}
            for one in found
        }


_KINDS = ("temperature", "voltage", "power", "offline")


def _system(system: Resource) -> ReadingTree:
    return {
        "power": read_property(system, "PowerState"),
        "health": read_property(system, "Status", "Health"),
        "serial": read_property(system, "SerialNumber"),
        "model": read_property(system, "Model"),
        "bios_version": read_property(system, "BiosVersion"),
        "boot_progress": read_property(system, "BootProgress", "LastState"),
        "cpus": read_property(system, "ProcessorSummary", "Count"),
        "memory_gib": read_property(system, "MemorySummary", "TotalSystemMemoryGiB"),
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


def read_utc_now() -> datetime:
    """Return our own time."""
    return datetime.now(UTC)
