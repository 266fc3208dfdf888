"""Reads the channel `bmc` from a BMC: a tree of readings, each branch of which fails alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

from assay.adapters.bmc.bios import (
    read_bios,
    read_bmc_settings,
    read_boot,
    read_memory_modules,
    read_pending_bios,
    read_processors,
)
from assay.adapters.bmc.errors import BmcResourceMissing
from assay.adapters.bmc.firmware import read_firmware_inventory
from assay.adapters.bmc.logs import LogsBefore, read_all_logs
from assay.adapters.bmc.request_time import OneRead
from assay.adapters.bmc.resource import read_branch, read_health, read_place, read_property
from assay.adapters.bmc.sensors import ChassisCooling, ChassisPower, read_sensors
from assay.adapters.bmc.session import RedfishSession, Resource
from assay.model.reading import ReadingTree, failed, value

UtcClock = Callable[[], datetime]
_SENSOR_BRANCHES = ("temperature", "voltage", "power", "offline")
PARTS = ("Component", "Module", "Card", "Cartridge", "Expansion", "Zone")
"""Values of ChassisType that are a part of an enclosure, not an enclosure."""


def find_manager(bmc: RedfishSession, system: Resource) -> Resource:
    """Return the manager of a system. Raises BmcResourceMissing where it has none."""
    managers = system.get("Links", {}).get("ManagedBy", [])
    if not managers:
        raise BmcResourceMissing("the system links to no Manager", where=bmc.where)
    return bmc.get(managers[0]["@odata.id"])


def read_manager(bmc: RedfishSession, system: Resource, now: UtcClock) -> Resource:
    """Return the manager of a system with the reading `clock_off_s`. `now` gives our time."""
    before = now()
    manager = find_manager(bmc, system)
    return {**manager, "clock_off_s": _clock_off(read_property(manager, "DateTime"), before, now())}


def find_enclosure(bmc: RedfishSession, system: Resource) -> Resource:
    """Return the chassis that holds a system's parts. Raises AssayError where the system has none.

    Mostly it is the first that the system links to. Some systems (GB200) link to the board of their BMC; then it is the
    chassis that links to the system and is no part itself.
    """
    links = (system.get("Links") or {}).get("Chassis", [])
    linked = [bmc.get(link["@odata.id"]) for link in links]
    enclosures = [chassis for chassis in linked if chassis.get("ChassisType") not in PARTS]
    if not enclosures and "Chassis" in bmc.root:
        for chassis in bmc.members(bmc.follow(bmc.root, "Chassis", 1)):
            systems = (chassis.get("Links") or {}).get("ComputerSystems") or []
            is_ours = not linked or system.get("@odata.id") in [link.get("@odata.id") for link in systems]
            enclosures += [chassis] if is_ours and chassis.get("ChassisType") not in PARTS else []
    if not (enclosures or linked):
        raise BmcResourceMissing("the BMC shows no Chassis of the system", where=bmc.where)
    return [*enclosures, *linked][0]


def read_bmc_tree(
    bmc: RedfishSession, systems: Callable[[], list[Resource]], before: LogsBefore, now: UtcClock
) -> ReadingTree:
    """Return the tree of the channel `bmc`. Raises nothing: what cannot be read is a leaf with the reason.

    `systems` reads the systems, the host's first. `before` is how far the event logs were read. `now` gives our time,
    with which the BMC's is compared.
    """
    reader = _BmcReader(bmc, systems, now)
    read_branch(reader.manager)  # first, since quirks may depend on its version
    branches = {"log": lambda: read_all_logs(bmc, reader.systems, before, now().isoformat()), **reader.branches()}
    read = bmc.reads.gather(partial(read_branch, branch) for branch in branches.values())
    tree: ReadingTree = dict(zip(branches, read, strict=True))
    log = tree.pop("log")
    return {**tree, **(log if "events" in log else {"events": log, "event_log": log})}


class _BmcReader:
    """Reads one BMC's branches; what several of them need is read once."""

    def __init__(self, bmc: RedfishSession, systems: Callable[[], list[Resource]], now: UtcClock) -> None:
        self.bmc, self.now = bmc, now
        self.systems = OneRead(systems).result
        self.manager = OneRead(self._read_manager).result
        self.chassis = OneRead(lambda: find_enclosure(bmc, self.system())).result
        self.power = OneRead(lambda: ChassisPower(bmc, self.chassis())).result
        self.cooling = OneRead(lambda: ChassisCooling(bmc, self.chassis())).result
        self.firmware = OneRead(lambda: read_firmware_inventory(bmc)).result
        self.sensor = OneRead(lambda: read_sensors(self._sensors())).result

    def system(self) -> Resource:
        """Return the system that the node's operating system runs on."""
        return self.systems()[0]

    def branches(self) -> dict[str, Callable[[], Any]]:
        """Return the branches by name, the most important first: if time runs out, the last are missing."""
        bmc, system = self.bmc, self.system
        return {
            "system": lambda: _system(system()),
            "manager": self._manager,
            "health": self._health,
            "psu": lambda: self.power().supplies(),
            "fan": lambda: self.cooling().fans(),
            "leak": lambda: self.cooling().leaks(),
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
            "settings": lambda: read_bmc_settings(bmc, system, self.manager),
            "chassis": self._chassis,
            "task": self._tasks,
        }

    def _read_manager(self) -> Resource:
        """Return the manager, and apply the quirks of its version."""
        manager = read_manager(self.bmc, self.system(), self.now)
        self.bmc.identify(bmc_version=manager.get("FirmwareVersion"))
        return manager

    def _manager(self) -> ReadingTree:
        manager = self.manager()
        return {
            "version": read_property(manager, "FirmwareVersion"),
            "health": read_property(manager, "Status", "Health"),
            "clock_off_s": manager["clock_off_s"],
        }

    def _chassis(self) -> ReadingTree:
        intrusion = read_property(self.chassis(), "PhysicalSecurity", "IntrusionSensor")
        return {"intrusion": intrusion, "place": read_place(self.chassis())}

    def _health(self) -> ReadingTree:
        """Return area → health, which the BMC rolls up from the area's parts."""
        return {
            "system": read_branch(lambda: read_health(self.system())),
            "chassis": read_branch(lambda: read_health(self.chassis())),
            "power": read_branch(lambda: self.power().read_health()),
            "cooling": read_branch(lambda: self.cooling().read_health()),
            "processors": read_branch(lambda: read_health(self.system().get("ProcessorSummary") or {})),
            "memory": read_branch(lambda: read_health(self.system().get("MemorySummary") or {})),
        }

    def _redundancy(self) -> ReadingTree:
        return {
            "psu": read_branch(lambda: self.power().redundancy()),
            "fan": read_branch(lambda: self.cooling().redundancy()),
        }

    def _sensor(self) -> ReadingTree:
        """Return every sensor, and `inlet_c`, the temperature of the air at the inlet."""
        sensors = read_branch(self.sensor)
        name = self.bmc.dialect.inlet_sensor
        inlet = read_branch(lambda: self._named_sensor(name, "temperature", "c") if name else self.cooling().inlet())
        return {"inlet_c": inlet, **(sensors if "offline" in sensors else dict.fromkeys(_SENSOR_BRANCHES, sensors))}

    def _power(self) -> ReadingTree:
        name = self.bmc.dialect.power_sensor
        return self.power().read_draw(self._named_sensor(name, "power", "w") if name else None)

    def _named_sensor(self, name: str, kind: str, unit: str) -> dict[str, Any]:
        sensor = self.sensor()[kind].get(name)
        if sensor is None:
            raise BmcResourceMissing(f"the chassis has no sensor {name}", where=self.bmc.where)
        reading: dict[str, Any] = sensor.get(unit, sensor)
        return reading

    def _sensors(self) -> Iterator[Resource]:
        """Yield the sensors of every chassis that holds a system of this BMC."""
        if "Sensors" not in self.chassis() or self.bmc.dialect.readings == "thermal-power":
            yield from (*self.cooling().temperatures(), *self.power().voltages())
            return
        links = [link for system in self.systems() for link in system.get("Links", {}).get("Chassis", [])]
        own = [{"@odata.id": self.chassis()["@odata.id"]}] if "@odata.id" in self.chassis() else []
        for path in dict.fromkeys(link["@odata.id"] for link in (*own, *links)):
            chassis = self.bmc.get(path)
            if "Sensors" in chassis:
                yield from self.bmc.members(self.bmc.follow(chassis, "Sensors", 1))

    def _tasks(self) -> ReadingTree:
        service = self.bmc.follow(self.bmc.root, "Tasks", 2, 1)
        tasks = self.bmc.members(self.bmc.follow(service, "Tasks", 1))
        return {
            str(task.get("Id")): {
                "state": read_property(task, "TaskState"),
                "status": read_property(task, "TaskStatus"),
            }
            for task in tasks
        }


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


def _clock_off(reading: dict[str, Any], before: datetime, after: datetime) -> dict[str, Any]:
    """Return how many seconds the BMC's clock is ahead of ours (negative: behind), without the time of the request.

    `before` and `after` are our times around the request.
    """
    if "value" not in reading:
        return reading
    bmc_time = datetime.fromisoformat(reading["value"])
    if bmc_time.tzinfo is None:
        return failed(f"the BMC's time {reading['value']} names no zone")
    behind_s, ahead_s = (bmc_time - before).total_seconds(), (bmc_time - after).total_seconds()
    if behind_s < -1:  # the BMC's time is in whole seconds
        return value(round(behind_s, 1))
    return value(round(ahead_s, 1) if ahead_s > 0 else 0)


def read_utc_now() -> datetime:
    """Return this machine's time in UTC."""
    return datetime.now(UTC)
