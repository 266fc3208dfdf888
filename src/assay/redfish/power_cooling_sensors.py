"""Power as a BMC tells of it: supplies, whether they stand in for each other, what the box draws and may draw.

Air and water as a BMC tells of them: fans, the temperature of the inlet, what looks for leaks.

A BMC's sensors: temperatures, voltages and powers, each with the thresholds that it has of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from assay.model.reading import ReadingTree, absent, failed, unsupported, value
from assay.redfish.property_readings import Resource, read_branch, read_by_bay, read_by_id, read_health, read_property
from assay.redfish.session import RedfishSession


class ChassisPower:
    """The power of one chassis, in the schema that the BMC's ways say: PowerSubsystem, else the older Power."""

    def __init__(self, bmc: RedfishSession, chassis: Resource) -> None:
        self._bmc = bmc
        newer = "PowerSubsystem" in chassis and bmc.dialect.readings == "subsystems"
        self._newer = newer or "Power" not in chassis
        place = "PowerSubsystem" if self._newer else "Power"
        self._power = bmc.follow(chassis, place, *((3,) if self._newer else ()))
        self._chassis = chassis

    def supplies(self) -> ReadingTree:
        """Return bay → readings of its supply: volts in, watts out, its serial number."""
        if not self._newer:
            return read_by_bay(self._power.get("PowerSupplies", []), _old_supply)
        units = self._bmc.members(self._bmc.follow(self._power, "PowerSupplies", 2, 1))
        return read_by_bay(units, self._supply)

    def redundancy(self) -> ReadingTree:
        """Return group → readings: its health, and how many of it are needed."""
        return read_redundancy(self._power.get("PowerSupplyRedundancy" if self._newer else "Redundancy", []))

    def read_health(self) -> dict[str, Any]:
        """Return the reading of the area's health."""
        return read_health(self._power)

    def read_draw(self, watts: dict[str, Any] | None) -> ReadingTree:
        """Return what the whole box draws and may draw; `watts` is the reading of a sensor that is known to mean it."""
        if "EnvironmentMetrics" in self._chassis:
            metrics = self._bmc.follow(self._chassis, "EnvironmentMetrics")
            mode = metrics.get("PowerLimitWatts", {}).get("ControlMode", "Automatic")
            limit = None if mode == "Disabled" else metrics.get("PowerLimitWatts", {}).get("SetPoint")
            return {"drawn_w": watts or read_property(metrics, "PowerWatts", "Reading"), **_cap(limit)}
        control: Resource = next(iter(self._power.get("PowerControl", [])), {})
        limit = (control.get("PowerLimit") or {}).get("LimitInWatts") if not watts else None
        return {"drawn_w": watts or read_property(control, "PowerConsumedWatts"), **_cap(limit)}

    def voltages(self) -> list[Resource]:
        """Return the voltages of the older schema as the newer one's sensors."""
        return [
            {**one, "Id": one.get("Name"), "ReadingType": "Voltage", "Reading": one.get("ReadingVolts")}
            for one in self._power.get("Voltages", [])
        ]

    def _supply(self, unit: Resource) -> ReadingTree:
        metrics = self._bmc.follow(unit, "Metrics") if "Metrics" in unit else {"@odata.id": unit.get("@odata.id")}
        return {
            **_common(unit),
            "input_v": read_property(metrics, "InputVoltage", "Reading"),
            "output_w": read_property(metrics, "OutputPowerWatts", "Reading"),
        }


def read_redundancy(groups: list[Resource]) -> ReadingTree:
    """Return the readings of redundancy groups by their number."""
    return {
        str(number): {"health": read_property(group, "Status", "Health"), "needed": _needed(group)}
        for number, group in enumerate(groups)
    }


def _needed(group: Resource) -> dict[str, Any]:
    return read_property(group, "MinNeededInGroup" if "MinNeededInGroup" in group else "MinNumNeeded")


def _cap(limit: Any) -> ReadingTree:
    return {"capped": value(bool(limit)), "cap_w": value(limit) if limit else absent("no cap is set")}


def _common(unit: Resource) -> ReadingTree:
    return {
        "state": read_property(unit, "Status", "State"),
        "health": read_property(unit, "Status", "Health"),
        "input": read_property(unit, "LineInputStatus"),
        "serial": read_property(unit, "SerialNumber"),
    }


def _old_supply(unit: Resource) -> ReadingTree:
    return {
        **_common(unit),
        "input_v": read_property(unit, "LineInputVoltage"),
        "output_w": read_property(unit, "PowerOutputWatts" if "PowerOutputWatts" in unit else "LastPowerOutputWatts"),
    }


_INTAKE = ("Intake", "RoomIntake")


class ChassisCooling:
    """The cooling of one chassis, in the schema that the BMC's ways say: ThermalSubsystem, else the older Thermal."""

    def __init__(self, bmc: RedfishSession, chassis: Resource) -> None:
        self._bmc = bmc
        newer = "ThermalSubsystem" in chassis and bmc.dialect.readings == "subsystems"
        if newer or "Thermal" not in chassis:
            self._thermal = bmc.follow(chassis, "ThermalSubsystem", 3, 2)
        else:
            self._thermal = bmc.follow(chassis, "Thermal")

    def fans(self) -> ReadingTree:
        """Return place → readings of its fan."""
        if isinstance(self._thermal.get("Fans"), list):
            return read_by_bay(self._thermal["Fans"], lambda fan: _fan(fan, read_property(fan, "Reading")))
        fans = self._bmc.members(self._bmc.follow(self._thermal, "Fans", 1))
        return read_by_bay(fans, lambda fan: _fan(fan, read_property(fan, "SpeedPercent", "SpeedRPM")))

    def redundancy(self) -> ReadingTree:
        """Return group → readings: its health, and how many of it are needed."""
        return read_redundancy(self._thermal.get("FanRedundancy") or self._thermal.get("Redundancy") or [])

    def read_health(self) -> dict[str, Any]:
        """Return the reading of the area's health."""
        return read_health(self._thermal)

    def leaks(self) -> ReadingTree:
        """Return detector → readings: OK, Warning or Critical. None are there where no water flows."""
        if "LeakDetection" not in self._thermal:
            return {}
        detection = self._bmc.follow(self._thermal, "LeakDetection", 2, 1)
        found = self._bmc.members(self._bmc.follow(detection, "LeakDetectors", 1))
        return read_by_id(
            found,
            lambda one: {
                "state": read_property(one, "DetectorState"),
                "health": read_property(one, "Status", "Health"),
            },
        )

    def inlet(self) -> dict[str, Any]:
        """Return the temperature of the air that comes in, from the cheapest place that has it."""
        if "ThermalMetrics" in self._thermal:
            metrics = self._bmc.follow(self._thermal, "ThermalMetrics")
            return read_property(metrics, "TemperatureSummaryCelsius", "Intake", "Reading")
        places = [one for one in self._thermal.get("Temperatures", []) if one.get("PhysicalContext") in _INTAKE]
        if len(places) != 1:  # some BMCs mark every sensor they have
            return unsupported(f"{len(places)} temperatures of the chassis are marked as its intake")
        return read_property(places[0], "ReadingCelsius")

    def temperatures(self) -> list[Resource]:
        """Return the temperatures of the older schema as the newer one's sensors."""
        return [
            {**one, "Id": one.get("Name"), "ReadingType": "Temperature", "Reading": one.get("ReadingCelsius")}
            for one in self._thermal.get("Temperatures", [])
        ]


def _fan(fan: Resource, rpm: Mapping[str, Any]) -> ReadingTree:
    return {"health": read_property(fan, "Status", "Health"), "rpm": rpm}


SENSOR_KINDS = {"Temperature": ("temperature", "c"), "Voltage": ("voltage", "v"), "Power": ("power", "w")}
"""ReadingType → (branch, the leaf that carries the number and its unit)."""

_UPPER = ("UpperCaution", "UpperCritical", "UpperFatal")
_LOWER = ("LowerCaution", "LowerCritical", "LowerFatal")
_OLD_UPPER = ("UpperThresholdNonCritical", "UpperThresholdCritical", "UpperThresholdFatal")
_OLD_LOWER = ("LowerThresholdNonCritical", "LowerThresholdCritical", "LowerThresholdFatal")
_GONE = ("Absent", "Disabled", "StandbyOffline", "UnavailableOffline")


def read_sensors(found: Iterable[Resource]) -> ReadingTree:
    """Return kind → id → readings, and `offline`: the ids of those that measure nothing now.

    `high_c` is the lowest upper threshold that a sensor has, `low_v` the highest lower one; a sensor without has none.
    """
    tree: ReadingTree = {name: {} for name, _ in SENSOR_KINDS.values()}
    offline: list[str] = []
    for one in found:
        kind, unit = SENSOR_KINDS.get(str(one.get("ReadingType")), ("", ""))
        if kind and (one.get("Status") or {}).get("State") in _GONE:
            offline.append(str(one.get("Id")))
        elif kind:
            tree[kind][str(one.get("Id"))] = read_branch(partial(_sensor, one, unit))
    return {**tree, "offline": value(sorted(offline))}


def _sensor(one: Resource, unit: str) -> ReadingTree:
    number = one.get("Reading")
    readings: ReadingTree = {unit: value(number) if number is not None else failed("the sensor reads nothing (null)")}
    if (high := _bound(one, (*_UPPER, *_OLD_UPPER))) is not None:
        readings[f"high_{unit}"] = value(high)
    if (low := _bound(one, (*_LOWER, *_OLD_LOWER))) is not None and unit != "c":
        readings[f"low_{unit}"] = value(low)
    return readings


def _bound(one: Resource, names: Iterable[str]) -> Any:
    """Return the first threshold of these that the sensor has."""
    thresholds = one.get("Thresholds") or {}
    for name in names:
        bound = thresholds.get(name, one.get(name))
        bound = bound.get("Reading") if isinstance(bound, Mapping) else bound
        if bound is not None:
            return bound
    return None
