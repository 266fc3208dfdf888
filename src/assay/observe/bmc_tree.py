"""The `bmc` channel: what a BMC says about its node, as a tree of readings. Each branch fails alone.

Redfish lets a service leave out what it does not implement and answer null for what it does not know just now:
the first reads unsupported, the second failed. A bay that the service lists as empty reads absent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from assay.model.errors import Trouble
from assay.model.reading import absent, failed, unsupported, value
from assay.observe.refusal import NotThere
from assay.observe.session import Resource, Session

Tree = dict[str, Any]
_EVENT_LOGS = ("SEL", "EventLog", "Event", "Log1")
_INTAKE = ("Intake", "RoomIntake")


def read_tree(bmc: Session, system: Callable[[], Resource]) -> Tree:
    """Return the tree of contracts' channel `bmc`. Raises nothing: what could not be read says why."""

    def chassis() -> Resource:
        places = system().get("Links", {}).get("Chassis", [])
        if not places:
            raise NotThere("the system links to no Chassis", where=bmc.where)
        return bmc.get(places[0]["@odata.id"])

    box = _once(chassis)
    thermal = _once(lambda: _thermal(bmc, box()))
    return {
        "system": _branch(lambda: _system(system())),
        "psu": _branch(lambda: _power_supplies(bmc, box())),
        "fan": _branch(lambda: _fans(bmc, thermal())),
        "sensor": _branch(lambda: _sensors(bmc, thermal())),
        "firmware": _branch(lambda: firmware(bmc)),
        "events": _branch(lambda: _events(bmc, system())),
    }


def firmware(bmc: Session) -> Tree:
    """Return inventory id → reading of its version. Raises Trouble where there is no inventory to read."""
    service = bmc.follow(bmc.root, "UpdateService")
    items = bmc.members(bmc.follow(service, "FirmwareInventory", 1))
    return {str(item.get("Id")): _version(item) for item in items}


def _branch(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except NotThere as trouble:
        return unsupported(trouble.what)
    except Trouble as trouble:
        return failed(trouble.what)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return failed(f"the BMC answered something that is not Redfish: {type(error).__name__} {error}")


def _once(read: Callable[[], Resource]) -> Callable[[], Resource]:
    kept: list[Resource] = []

    def answer() -> Resource:
        if not kept:
            kept.append(read())
        return kept[0]

    return answer


def _system(system: Resource) -> Tree:
    return {
        "power": _leaf(system, "PowerState"),
        "health": _leaf(system, "Status", "Health"),
        "serial": _leaf(system, "SerialNumber"),
        "model": _leaf(system, "Model"),
        "boot_progress": _leaf(system, "BootProgress", "LastState"),
    }


def _power_supplies(bmc: Session, chassis: Resource) -> Tree:
    if "PowerSubsystem" not in chassis:
        power = bmc.follow(chassis, "Power")
        return _numbered(power.get("PowerSupplies", []), _old_power_supply)
    power = bmc.follow(chassis, "PowerSubsystem", 3)
    units = bmc.members(bmc.follow(power, "PowerSupplies", 2, 1))
    return _numbered(units, lambda unit: _power_supply(bmc, unit))


def _power_supply(bmc: Session, unit: Resource) -> Tree:
    metrics = bmc.follow(unit, "Metrics") if "Metrics" in unit else {"@odata.id": unit.get("@odata.id")}
    return {
        "state": _leaf(unit, "Status", "State"),
        "health": _leaf(unit, "Status", "Health"),
        "input_v": _leaf(metrics, "InputVoltage", "Reading"),
        "output_w": _leaf(metrics, "OutputPowerWatts", "Reading"),
    }


def _old_power_supply(unit: Resource) -> Tree:
    return {
        "state": _leaf(unit, "Status", "State"),
        "health": _leaf(unit, "Status", "Health"),
        "input_v": _leaf(unit, "LineInputVoltage"),
        "output_w": _leaf(unit, "PowerOutputWatts" if "PowerOutputWatts" in unit else "LastPowerOutputWatts"),
    }


def _thermal(bmc: Session, chassis: Resource) -> Resource:
    if "ThermalSubsystem" in chassis:
        return bmc.follow(chassis, "ThermalSubsystem", 2)
    return bmc.follow(chassis, "Thermal")


def _fans(bmc: Session, thermal: Resource) -> Tree:
    if isinstance(thermal.get("Fans"), list):
        return _numbered(thermal["Fans"], lambda fan: _fan(fan, _leaf(fan, "Reading")))
    fans = bmc.members(bmc.follow(thermal, "Fans", 1))
    return _numbered(fans, lambda fan: _fan(fan, _leaf(fan, "SpeedPercent", "SpeedRPM")))


def _fan(fan: Resource, rpm: Mapping[str, Any]) -> Tree:
    return {"health": _leaf(fan, "Status", "Health"), "rpm": rpm}


def _sensors(bmc: Session, thermal: Resource) -> Tree:
    """Return inlet_c from the cheapest place that has it: one summary, not a walk over hundreds of sensors."""
    if "ThermalMetrics" in thermal:
        metrics = bmc.follow(thermal, "ThermalMetrics")
        return {"inlet_c": _leaf(metrics, "TemperatureSummaryCelsius", "Intake", "Reading")}
    places = [place for place in thermal.get("Temperatures", []) if place.get("PhysicalContext") in _INTAKE]
    if len(places) != 1:  # some BMCs mark every sensor they have
        return {"inlet_c": unsupported(f"{len(places)} temperatures of the chassis are marked as its intake")}
    return {"inlet_c": _leaf(places[0], "ReadingCelsius")}


def _events(bmc: Session, system: Resource) -> Any:
    for holder in _log_holders(bmc, system):
        services = bmc.members(bmc.follow(holder, "LogServices", 1)) if "LogServices" in holder else []
        logs = [log for name in _EVENT_LOGS for log in services if log.get("Id") == name]
        if logs:
            return value([_event(entry) for entry in bmc.members(bmc.follow(logs[0], "Entries", 1))])
    raise NotThere(f"no log service of the BMC is called {', '.join(_EVENT_LOGS)}", where=bmc.where)


def _log_holders(bmc: Session, system: Resource) -> Iterator[Resource]:
    """Yield where vendors keep the event log: the system, its managers, its chassis."""
    yield system
    for link in ("ManagedBy", "Chassis"):
        for place in system.get("Links", {}).get(link, []):
            yield bmc.get(place["@odata.id"])


def _event(entry: Resource) -> dict[str, str]:
    return {
        "id": str(entry.get("Id", "")),
        "at": str(entry.get("Created") or ""),
        "severity": str(entry.get("Severity") or ""),
        "message": str(entry.get("Message") or ""),
        "message_id": str(entry.get("MessageId") or ""),
    }


def _version(item: Resource) -> dict[str, Any]:
    version = item.get("Version")
    if version is None or not str(version).strip():
        return failed("the BMC lists this part without a version")
    return value(str(version).strip())


def _numbered(units: Iterable[Resource], read: Callable[[Resource], Tree]) -> Tree:
    """Return readings by bay number: the number that ends each unit's id, else its place in the list."""
    units = list(units)
    names = [re.search(r"\d+$", str(unit.get("Id") or unit.get("MemberId") or "")) for unit in units]
    numbers = [str(int(found[0])) for found in names if found]
    if len(set(numbers)) < len(units):
        numbers = [str(place) for place in range(len(units))]
    return {number: _bay(unit, read) for number, unit in zip(numbers, units, strict=True)}


def _bay(unit: Resource, read: Callable[[Resource], Tree]) -> Any:
    if unit.get("Status", {}).get("State") == "Absent":
        return absent("the bay is empty")
    return _branch(lambda: read(unit))


def _leaf(resource: Resource, *path: str) -> dict[str, Any]:
    """Return the reading of one property."""
    found: Any = resource
    for step in path:
        if not isinstance(found, Mapping) or step not in found:
            return unsupported(f"{resource.get('@odata.id', 'the resource')} has no {'.'.join(path)}")
        found = found[step]
    return failed(f"the BMC does not know {'.'.join(path)} (null)") if found is None else value(found)
