"""Reads the channel `bmc` from a BMC: a tree of readings, each branch of which fails alone."""

from __future__ import annotations

from collections.abc import Callable
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
from assay.adapters.bmc.sensors import (
    ChassisCooling,
    ChassisPower,
    Part,
    list_parts,
    list_schemas,
    list_unlisted,
    read_fan_sensors,
    read_intake,
    read_newer_sensors,
    read_sensors,
)
from assay.adapters.bmc.session import RedfishSession, Resource
from assay.adapters.bmc.systems import SERIAL_SHARED_WITH, list_chassis, read_links
from assay.model.reading import ReadingTree, failed, unsupported, value

UtcClock = Callable[[], datetime]
_SENSOR_BRANCHES = ("temperature", "voltage", "power", "offline")


def find_manager(bmc: RedfishSession, system: Resource) -> Resource:
    """Return the manager of a system. Raises BmcResourceMissing where it has none."""
    managers = (system.get("Links") or {}).get("ManagedBy") or []
    if not managers:
        raise BmcResourceMissing("the system links to no Manager", where=bmc.where)
    return bmc.get(managers[0]["@odata.id"])


def read_manager(bmc: RedfishSession, system: Resource, now: UtcClock) -> Resource:
    """Return the manager of a system with the reading `clock_off_s`. `now` gives our time."""
    before = now()
    manager = find_manager(bmc, system)
    return {**manager, "clock_off_s": _clock_off(read_property(manager, "DateTime"), before, now())}


def read_bmc_tree(
    bmc: RedfishSession, systems: Callable[[], list[Resource]], before: LogsBefore, now: UtcClock
) -> ReadingTree:
    """Return the tree of the channel `bmc`. Raises nothing: what cannot be read is a leaf with the reason.

    `systems` reads the systems, the host's first. `before` is how far the event logs were read. `now` gives our time,
    with which the BMC's is compared.
    """
    reader = _BmcReader(bmc, systems, now)
    read_branch(reader.manager)  # first, since quirks may depend on its version
    branches = reader.branches(lambda: read_all_logs(bmc, reader.systems, before, now().isoformat()))
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
        self.chassis = OneRead(lambda: next(list_chassis(bmc, self.systems()))).result
        self.firmware = OneRead(lambda: read_firmware_inventory(bmc)).result
        self.sensors = OneRead(self._read_sensors).result
        self.sensor = OneRead(lambda: read_sensors(self.sensors())).result

    def system(self) -> Resource:
        """Return the system that the node's operating system runs on."""
        return self.systems()[0]

    def branches(self, log: Callable[[], Any]) -> dict[str, Callable[[], Any]]:
        """Return the branches by name, the most important first: if time runs out, the last are missing."""
        bmc, system = self.bmc, self.system
        return {
            "system": lambda: _system(system()),
            "manager": self._manager,
            "health": self._health,
            "log": log,
            "psu": lambda: self._first(ChassisPower, ChassisPower.supplies),
            "fan": self._fans,
            "leak": lambda: self._first(ChassisCooling, ChassisCooling.leaks),
            "redundancy": self._redundancy,
            "sensor": self._sensor,
            "power": self._power,
            "firmware": lambda: self.firmware().running,
            "firmware_pending": lambda: self.firmware().pending,
            "firmware_kind": lambda: self.firmware().kinds,
            "processor": lambda: read_processors(bmc, self.systems()),
            "memory": lambda: read_memory_modules(bmc, system()),
            "bios": lambda: read_bios(bmc, system()),
            "bios_pending": lambda: read_pending_bios(bmc, system()),
            "boot": lambda: read_boot(bmc, system()),
            "settings": lambda: read_bmc_settings(bmc, system, self.manager),
            "chassis": self._chassis,
            "certificate": self._certificate,
            "integrity": self._integrity,
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
            "power": read_branch(lambda: self._first(ChassisPower, ChassisPower.read_health)),
            "cooling": read_branch(lambda: self._first(ChassisCooling, ChassisCooling.read_health)),
            "processors": read_branch(lambda: read_health(self.system().get("ProcessorSummary") or {})),
            "memory": read_branch(lambda: read_health(self.system().get("MemorySummary") or {})),
        }

    def _redundancy(self) -> ReadingTree:
        return {
            "psu": read_branch(lambda: self._first(ChassisPower, ChassisPower.redundancy)),
            "fan": read_branch(lambda: self._first(ChassisCooling, ChassisCooling.redundancy)),
        }

    def _sensor(self) -> ReadingTree:
        """Return every sensor, and `inlet_c`, the temperature of the air at the inlet."""
        sensors = read_branch(self.sensor)
        name = self.bmc.dialect.inlet_sensor
        if name:
            inlet = read_branch(lambda: self._named_sensor(name, "temperature", "c"))
        else:
            inlet = read_branch(lambda: self._first(ChassisCooling, ChassisCooling.inlet))
        if not name and "unsupported" in inlet:
            inlet = read_branch(lambda: read_intake(self.sensors())) or inlet
        return {"inlet_c": inlet, **(sensors if "offline" in sensors else dict.fromkeys(_SENSOR_BRANCHES, sensors))}

    def _power(self) -> ReadingTree:
        name = self.bmc.dialect.power_sensor
        watts = self._named_sensor(name, "power", "w") if name else None
        return self._first(ChassisPower, lambda part: part.read_draw(watts))

    def _named_sensor(self, name: str, kind: str, unit: str) -> dict[str, Any]:
        sensor = self.sensor()[kind].get(name)
        if sensor is None:
            raise BmcResourceMissing(f"the chassis has no sensor {name}", where=self.bmc.where)
        reading: dict[str, Any] = sensor.get(unit, sensor)
        return reading

    def _first(self, kind: type[Part], read: Callable[[Part], ReadingTree]) -> ReadingTree:
        """Return what the first chassis says that has it; what the first says of its lack where none has."""
        lacking: list[ReadingTree] = []
        for part in list_parts(self.bmc, list_chassis(self.bmc, self.systems()), kind):
            tree: ReadingTree = read_branch(partial(read, part))
            if tree and "unsupported" not in tree:
                return tree
            lacking.append(tree)
        return next(iter(lacking), unsupported("no chassis of the system has it"))

    def _fans(self) -> ReadingTree:
        """Return the fans; a BMC that lists none may show their speed among its sensors."""
        fans = self._first(ChassisCooling, ChassisCooling.fans)
        return (read_fan_sensors(self.sensors()) or fans) if not fans or "unsupported" in fans else fans

    def _read_sensors(self) -> list[Resource]:
        """Return the sensors of all chassis, and of the older schema those that are not among them.

        The older schema is asked where it has the fans and supplies too, or where the newer has no sensor of its kind.
        """
        boards = [chassis for board in self.systems()[1:] for chassis in read_links(self.bmc, board, "Chassis")]
        near = [*list_chassis(self.bmc, self.systems(), everywhere=False), *boards]
        sensors = [sensor for chassis in near for sensor in read_newer_sensors(self.bmc, chassis)]
        for chassis in list_chassis(self.bmc, self.systems()):
            kinds = {str(sensor.get("ReadingType")) for sensor in sensors}
            if chassis not in near:
                if {"Temperature", "Voltage"} <= kinds:
                    break
                sensors += read_newer_sensors(self.bmc, chassis)
            for kind, part in (("Temperature", ChassisCooling), ("Voltage", ChassisPower)):
                newer, older = part.LINKS
                if older in chassis and not (kind in kinds and newer in list_schemas(self.bmc, chassis, part.LINKS)):
                    sensors += list_unlisted(part(self.bmc, chassis, older).older_sensors(), sensors)
        return sensors

    def _certificate(self) -> ReadingTree:
        self.system()  # a BMC that answers nothing has shown its certificate, and is silent all the same
        return self.bmc.read_certificate(self.now())

    def _integrity(self) -> ReadingTree:
        """Return component → Success or Failed: whether it proved by its certificate (SPDM) whose firmware it runs."""
        reports = self.bmc.members(self.bmc.follow(self.bmc.root, "ComponentIntegrity", 1))
        path = ("SPDM", "IdentityAuthentication", "ResponderAuthentication", "VerificationStatus")
        verified = {str(report.get("Id")): read_property(report, *path) for report in reports}
        judged = {name: reading for name, reading in verified.items() if "unsupported" not in reading}
        return judged or unsupported("the BMC says of no component whether it verified it")

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
    sharing = ", ".join(system.get(SERIAL_SHARED_WITH, ()))
    serial = unsupported(f"{sharing} has the same serial number") if sharing else read_property(system, "SerialNumber")
    return {
        "power": read_property(system, "PowerState"),
        "health": read_property(system, "Status", "Health"),
        "serial": serial,
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
