"""Reads a chassis' power (supplies, redundancy, draw and cap), cooling (fans, inlet, leaks) and sensors.

Each exists in an older and a newer Redfish schema; the BMC's dialect and what the chassis links to decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from assay.adapters.bmc.resource import read_branch, read_by_bay, read_by_id, read_health, read_property
from assay.adapters.bmc.session import RedfishSession, Resource
from assay.model.reading import ReadingTree, absent, failed, unsupported, value

SENSOR_KINDS = {"Temperature": ("temperature", "c"), "Voltage": ("voltage", "v"), "Power": ("power", "w")}
"""ReadingType → (branch, name of the leaf, which is the unit)."""

_UPPER_THRESHOLDS = (  # the mildest first; of the newer schema, then of the older one
    "UpperCaution",
    "UpperCritical",
    "UpperFatal",
    "UpperThresholdNonCritical",
    "UpperThresholdCritical",
    "UpperThresholdFatal",
)
_LOWER_THRESHOLDS = (
    "LowerCaution",
    "LowerCritical",
    "LowerFatal",
    "LowerThresholdNonCritical",
    "LowerThresholdCritical",
    "LowerThresholdFatal",
)
_OFFLINE_STATES = ("Absent", "Disabled", "StandbyOffline", "UnavailableOffline")

_INTAKE = ("Intake", "RoomIntake")


class ChassisPower:
    """The power of one chassis, from PowerSubsystem or the older Power. Methods raise AssayError."""

    def __init__(self, bmc: RedfishSession, chassis: Resource) -> None:
        self._bmc = bmc
        use_subsystem = "PowerSubsystem" in chassis and bmc.dialect.readings == "subsystems"
        self._is_subsystem = use_subsystem or "Power" not in chassis
        self._power = bmc.follow(chassis, "PowerSubsystem", 3) if self._is_subsystem else bmc.follow(chassis, "Power")
        self._chassis = chassis

    def supplies(self) -> ReadingTree:
        """Return bay → readings of its supply: state, health, input, serial number, volts in, watts out."""
        if not self._is_subsystem:
            return read_by_bay(self._power.get("PowerSupplies", []), _supply_of_power)
        units = self._bmc.members(self._bmc.follow(self._power, "PowerSupplies", 2, 1))
        return read_by_bay(units, self._supply)

    def redundancy(self) -> ReadingTree:
        """Return group → readings: `health`, and how many units are `needed`."""
        return read_redundancy(self._power.get("PowerSupplyRedundancy" if self._is_subsystem else "Redundancy", []))

    def read_health(self) -> dict[str, Any]:
        """Return the reading of the health, rolled up by the BMC."""
        return read_health(self._power)

    def read_draw(self, watts: dict[str, Any] | None) -> ReadingTree:
        """Return what the whole chassis draws, and its cap. `watts` is the reading of a quirk's sensor for the draw."""
        if "EnvironmentMetrics" in self._chassis:
            metrics = self._bmc.follow(self._chassis, "EnvironmentMetrics")
            mode = metrics.get("PowerLimitWatts", {}).get("ControlMode", "Automatic")
            limit = None if mode == "Disabled" else metrics.get("PowerLimitWatts", {}).get("SetPoint")
            return {"drawn_w": watts or read_property(metrics, "PowerWatts", "Reading"), **_cap_readings(limit)}
        control: Resource = next(iter(self._power.get("PowerControl", [])), {})
        limit = (control.get("PowerLimit") or {}).get("LimitInWatts") if not watts else None
        return {"drawn_w": watts or read_property(control, "PowerConsumedWatts"), **_cap_readings(limit)}

    def voltages(self) -> list[Resource]:
        """Return the voltages of the older schema in the form of the newer one's sensors."""
        return [
            {**sensor, "Id": sensor.get("Name"), "ReadingType": "Voltage", "Reading": sensor.get("ReadingVolts")}
            for sensor in self._power.get("Voltages", [])
        ]

    def _supply(self, unit: Resource) -> ReadingTree:
        metrics = self._bmc.follow(unit, "Metrics") if "Metrics" in unit else {"@odata.id": unit.get("@odata.id")}
        return {
            **_supply_readings(unit),
            "input_v": read_property(metrics, "InputVoltage", "Reading"),
            "output_w": read_property(metrics, "OutputPowerWatts", "Reading"),
        }


class ChassisCooling:
    """The cooling of one chassis, from ThermalSubsystem or the older Thermal. Methods raise AssayError."""

    def __init__(self, bmc: RedfishSession, chassis: Resource) -> None:
        self._bmc = bmc
        use_subsystem = "ThermalSubsystem" in chassis and bmc.dialect.readings == "subsystems"
        if use_subsystem or "Thermal" not in chassis:
            self._thermal = bmc.follow(chassis, "ThermalSubsystem", 3, 2)
        else:
            self._thermal = bmc.follow(chassis, "Thermal")

    def fans(self) -> ReadingTree:
        """Return bay → readings of its fan: `health` and `rpm`."""
        if isinstance(self._thermal.get("Fans"), list):
            return read_by_bay(self._thermal["Fans"], lambda fan: _fan(fan, read_property(fan, "Reading")))
        fans = self._bmc.members(self._bmc.follow(self._thermal, "Fans", 1))
        return read_by_bay(fans, lambda fan: _fan(fan, read_property(fan, "SpeedPercent", "SpeedRPM")))

    def redundancy(self) -> ReadingTree:
        """Return group → readings: `health`, and how many units are `needed`."""
        return read_redundancy(self._thermal.get("FanRedundancy") or self._thermal.get("Redundancy") or [])

    def read_health(self) -> dict[str, Any]:
        """Return the reading of the health, rolled up by the BMC."""
        return read_health(self._thermal)

    def leaks(self) -> ReadingTree:
        """Return detector → readings: `state` (OK, Warning, Critical) and `health`. Air-cooled chassis have none."""
        if "LeakDetection" not in self._thermal:
            return {}
        detection = self._bmc.follow(self._thermal, "LeakDetection", 2, 1)
        return read_by_id(
            self._bmc.members(self._bmc.follow(detection, "LeakDetectors", 1)),
            lambda detector: {
                "state": read_property(detector, "DetectorState"),
                "health": read_property(detector, "Status", "Health"),
            },
        )

    def inlet(self) -> dict[str, Any]:
        """Return the temperature of the air at the inlet, with the fewest requests."""
        if "ThermalMetrics" in self._thermal:
            metrics = self._bmc.follow(self._thermal, "ThermalMetrics")
            return read_property(metrics, "TemperatureSummaryCelsius", "Intake", "Reading")
        sensors = self._thermal.get("Temperatures", [])
        intakes = [sensor for sensor in sensors if sensor.get("PhysicalContext") in _INTAKE]
        if len(intakes) != 1:  # some BMCs mark every sensor
            return unsupported(f"{len(intakes)} temperatures of the chassis are marked as its intake")
        return read_property(intakes[0], "ReadingCelsius")

    def temperatures(self) -> list[Resource]:
        """Return the temperatures of the older schema in the form of the newer one's sensors."""
        return [
            {**sensor, "Id": sensor.get("Name"), "ReadingType": "Temperature", "Reading": sensor.get("ReadingCelsius")}
            for sensor in self._thermal.get("Temperatures", [])
        ]


def _fan(fan: Resource, rpm: Mapping[str, Any]) -> ReadingTree:
    return {"health": read_property(fan, "Status", "Health"), "rpm": rpm}


def read_redundancy(groups: list[Resource]) -> ReadingTree:
    """Return the readings of redundancy groups by their number."""
    tree: ReadingTree = {}
    for number, group in enumerate(groups):
        needed = read_property(group, "MinNeededInGroup" if "MinNeededInGroup" in group else "MinNumNeeded")
        tree[str(number)] = {"health": read_property(group, "Status", "Health"), "needed": needed}
    return tree


def _cap_readings(limit: Any) -> ReadingTree:
    return {"capped": value(bool(limit)), "cap_w": value(limit) if limit else absent("no cap is set")}


def _supply_readings(unit: Resource) -> ReadingTree:
    return {
        "state": read_property(unit, "Status", "State"),
        "health": read_property(unit, "Status", "Health"),
        "input": read_property(unit, "LineInputStatus"),
        "serial": read_property(unit, "SerialNumber"),
    }


def _supply_of_power(unit: Resource) -> ReadingTree:
    return {
        **_supply_readings(unit),
        "input_v": read_property(unit, "LineInputVoltage"),
        "output_w": read_property(unit, "PowerOutputWatts" if "PowerOutputWatts" in unit else "LastPowerOutputWatts"),
    }


def read_sensors(sensors: Iterable[Resource]) -> ReadingTree:
    """Return kind → id → readings, and `offline`: the ids of sensors that measure nothing now.

    `high_c` is a sensor's lowest upper threshold, `low_v` its highest lower one; a sensor may have neither.
    """
    tree: ReadingTree = {name: {} for name, _ in SENSOR_KINDS.values()}
    offline: list[str] = []
    for sensor in sensors:
        kind, unit = SENSOR_KINDS.get(str(sensor.get("ReadingType")), ("", ""))
        if kind and (sensor.get("Status") or {}).get("State") in _OFFLINE_STATES:
            offline.append(str(sensor.get("Id")))
        elif kind:
            tree[kind][str(sensor.get("Id"))] = read_branch(partial(_sensor_readings, sensor, unit))
    return {**tree, "offline": value(sorted(offline))}


def _sensor_readings(sensor: Resource, unit: str) -> ReadingTree:
    number = sensor.get("Reading")
    readings: ReadingTree = {unit: value(number) if number is not None else failed("the sensor reads nothing (null)")}
    if (high := _first_threshold(sensor, _UPPER_THRESHOLDS)) is not None:
        readings[f"high_{unit}"] = value(high)
    if (low := _first_threshold(sensor, _LOWER_THRESHOLDS)) is not None and unit != "c":
        readings[f"low_{unit}"] = value(low)
    return readings


def _first_threshold(sensor: Resource, names: Iterable[str]) -> Any:
    """Return the first of these thresholds that the sensor has."""
    thresholds = sensor.get("Thresholds") or {}
    for name in names:
        threshold = thresholds.get(name, sensor.get(name))
        threshold = threshold.get("Reading") if isinstance(threshold, Mapping) else threshold
        if threshold is not None:
            return threshold
    return None
