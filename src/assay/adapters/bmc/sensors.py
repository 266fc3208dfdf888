"""Reads a chassis' power (supplies, redundancy, draw and cap), cooling (fans, inlet, leaks) and sensors.

Each exists in an older and a newer Redfish schema; the BMC's dialect and what the chassis links to decide. Numbers are
in the unit that the BMC names, else in that of the schema.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from assay.adapters.bmc.errors import BmcResourceMissing
from assay.adapters.bmc.resource import read_branch, read_by_bay, read_by_id, read_health, read_property
from assay.adapters.bmc.session import RedfishSession, Resource
from assay.model.reading import ReadingTree, absent, failed, unsupported, value

SENSOR_KINDS = {"Temperature": ("temperature", "c"), "Voltage": ("voltage", "v"), "Power": ("power", "w")}
"""ReadingType → (branch, name of the leaf, which is the unit)."""
UNITS: dict[str, dict[str, tuple[float, float]]] = {
    "c": {"cel": (1, 0), "celsius": (1, 0), "c": (1, 0), "k": (1, -273.15), "[degf]": (5 / 9, -160 / 9)},
    "v": {"v": (1, 0), "volts": (1, 0), "mv": (0.001, 0), "kv": (1000, 0)},
    "w": {"w": (1, 0), "watts": (1, 0), "mw": (0.001, 0), "kw": (1000, 0)},
    "rpm": {"rpm": (1, 0), "{rev}/min": (1, 0)},
}
"""Our unit → the BMC's (DMTF's schemas take them from UCUM), in lower case → factor and offset to ours."""

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


def list_schemas(bmc: RedfishSession, chassis: Resource, links: tuple[str, str]) -> list[str]:
    """Return those of the links to the newer and the older schema that a chassis has and that the dialect reads."""
    newer, older = (link in chassis for link in links)
    use_newer = newer and (bmc.dialect.readings == "subsystems" or not older)
    return [link for link, is_read in zip(links, (use_newer, older), strict=True) if is_read]


def read_newer_sensors(bmc: RedfishSession, chassis: Resource) -> list[Resource]:
    """Return the sensors of the newer schema of a chassis, unless the dialect says that they are no good."""
    if "Sensors" not in chassis or bmc.dialect.readings != "subsystems":
        return []
    return bmc.members(bmc.follow(chassis, "Sensors", 1))


class ChassisPower:
    """The power of one chassis, from PowerSubsystem or the older Power. Methods raise AssayError."""

    LINKS = ("PowerSubsystem", "Power")

    def __init__(self, bmc: RedfishSession, chassis: Resource, link: str) -> None:
        self._bmc = bmc
        self._is_subsystem = link == "PowerSubsystem"
        self._power = bmc.follow(chassis, link, 3) if self._is_subsystem else bmc.follow(chassis, link)
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
        if not self._power.get("PowerControl") and not watts:
            return unsupported(f"{self._power.get('@odata.id')} has no PowerControl")
        control: Resource = next(iter(self._power.get("PowerControl") or []), {})
        limit = (control.get("PowerLimit") or {}).get("LimitInWatts") if not watts else None
        return {"drawn_w": watts or read_property(control, "PowerConsumedWatts"), **_cap_readings(limit)}

    def older_sensors(self) -> list[Resource]:
        """Return the voltages of the older schema in the form of the newer one's sensors."""
        return [
            {**sensor, "Id": sensor.get("Name"), "ReadingType": "Voltage", "Reading": sensor.get("ReadingVolts")}
            for sensor in self._power.get("Voltages") or []
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

    LINKS = ("ThermalSubsystem", "Thermal")

    def __init__(self, bmc: RedfishSession, chassis: Resource, link: str) -> None:
        self._bmc = bmc
        self._thermal = bmc.follow(chassis, link, *((3, 2) if link == "ThermalSubsystem" else ()))

    def fans(self) -> ReadingTree:
        """Return bay → readings of its fan: `health` and `rpm`."""
        if isinstance(self._thermal.get("Fans"), list):
            return read_by_bay(self._thermal["Fans"], lambda fan: _fan(fan, _convert_reading(fan, "rpm")))
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

    def older_sensors(self) -> list[Resource]:
        """Return the temperatures of the older schema in the form of the newer one's sensors."""
        return [
            {**sensor, "Id": sensor.get("Name"), "ReadingType": "Temperature", "Reading": sensor.get("ReadingCelsius")}
            for sensor in self._thermal.get("Temperatures") or []
        ]


Part = TypeVar("Part", ChassisPower, ChassisCooling)


def list_parts(bmc: RedfishSession, chassis: Iterable[Resource], kind: type[Part]) -> Iterator[Part]:
    """Yield the power or cooling of each chassis, in each schema."""
    for holder in chassis:
        for link in list_schemas(bmc, holder, kind.LINKS):
            with contextlib.suppress(BmcResourceMissing):  # a link to nothing
                yield kind(bmc, holder, link)


def _fan(fan: Resource, rpm: Mapping[str, Any]) -> ReadingTree:
    return {"health": read_property(fan, "Status", "Health"), "rpm": rpm}


def read_fan_sensors(sensors: Iterable[Resource]) -> ReadingTree:
    """Return bay → readings of its fan, of the sensors that measure a rotation; {} where there are none."""
    fans = [sensor for sensor in sensors if sensor.get("ReadingType") == "Rotational"]
    return read_by_bay(fans, lambda fan: _fan(fan, _convert_reading(fan, "rpm")))


def read_intake(sensors: Iterable[Resource]) -> ReadingTree:
    """Return the temperature of the only sensor that is marked as the intake; {} where there is none, or several."""
    kind = [sensor for sensor in sensors if sensor.get("ReadingType") == "Temperature"]
    intakes = [sensor for sensor in kind if sensor.get("PhysicalContext") in _INTAKE]
    return _convert_reading(intakes[0], "c") if len(intakes) == 1 else {}


def list_unlisted(older: Iterable[Resource], sensors: Iterable[Resource]) -> list[Resource]:
    """Return the sensors of the older schema that are not among those of the newer one.

    Vendors write one sensor's name differently: `TEMP_AMBIENT` and `TEMP AMBIENT`, `CPU0 VDD` and `CPU0 VDD Voltage`.
    """
    known = [(sensor.get("ReadingType"), _words(sensor, name)) for sensor in sensors for name in ("Id", "Name")]

    def is_known(sensor: Resource) -> bool:
        own, kind = [_words(sensor, name) for name in ("Name", "MemberId")], sensor.get("ReadingType")
        return any(words and kind == other and words == name[: len(words)] for other, words in known for name in own)

    return [sensor for sensor in older if not is_known(sensor)]


def _words(sensor: Resource, name: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", str(sensor.get(name) or "").lower())


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
    is_null = sensor.get("Reading") is None
    reading = failed("the sensor reads nothing (null)") if is_null else _convert_reading(sensor, unit)
    readings: ReadingTree = {unit: reading}
    for name, thresholds in (("high", _UPPER_THRESHOLDS), ("low", _LOWER_THRESHOLDS)):
        limit = _first_threshold(sensor, thresholds)
        if limit is not None and "unsupported" not in reading and (name, unit) != ("low", "c"):
            readings[f"{name}_{unit}"] = _convert(limit, sensor, unit)
    return readings


def _convert_reading(sensor: Resource, unit: str) -> dict[str, Any]:
    """Return the reading of a sensor's or fan's `Reading` in our unit."""
    reading = read_property(sensor, "Reading")
    return _convert(reading["value"], sensor, unit) if "value" in reading else reading


def _convert(number: Any, sensor: Resource, unit: str) -> dict[str, Any]:
    """Return the reading of a number in our unit, from the one that the sensor names; unsupported for any other."""
    named = str(sensor.get("ReadingUnits") or unit)
    factor, offset = UNITS[unit].get(named.lower(), (None, 0.0))
    if factor is None:
        return unsupported(f"the BMC gives {sensor.get('Name') or sensor.get('Id')} in {named}, not in {unit}")
    return value(number if (factor, offset) == (1, 0) else round(number * factor + offset, 6))


def _first_threshold(sensor: Resource, names: Iterable[str]) -> Any:
    """Return the first of these thresholds that the sensor has."""
    thresholds = sensor.get("Thresholds") or {}
    for name in names:
        threshold = thresholds.get(name, sensor.get(name))
        threshold = threshold.get("Reading") if isinstance(threshold, Mapping) else threshold
        if threshold is not None:
            return threshold
    return None
