"""Power as a BMC tells of it: supplies, whether they stand in for each other, what the box draws and may draw."""

from __future__ import annotations

from typing import Any

from assay.model.reading import absent, value
from assay.observe.bmc_leaves import Resource, Tree, health, leaf, numbered
from assay.observe.session import Session


class Power:
    """The power of one chassis, in the schema that the BMC's ways say: PowerSubsystem, else the older Power."""

    def __init__(self, bmc: Session, chassis: Resource) -> None:
        self._bmc = bmc
        newer = "PowerSubsystem" in chassis and bmc.ways.readings == "subsystems"
        self._newer = newer or "Power" not in chassis
        place = "PowerSubsystem" if self._newer else "Power"
        self._power = bmc.follow(chassis, place, *((3,) if self._newer else ()))
        self._chassis = chassis

    def supplies(self) -> Tree:
        """Return bay → readings of its supply: volts in, watts out, its serial number."""
        if not self._newer:
            return numbered(self._power.get("PowerSupplies", []), _old_supply)
        units = self._bmc.members(self._bmc.follow(self._power, "PowerSupplies", 2, 1))
        return numbered(units, self._supply)

    def redundancy(self) -> Tree:
        """Return group → readings: its health, and how many of it are needed."""
        return redundancy(self._power.get("PowerSupplyRedundancy" if self._newer else "Redundancy", []))

    def area(self) -> dict[str, Any]:
        """Return the reading of the area's health."""
        return health(self._power)

    def drawn(self, watts: dict[str, Any] | None) -> Tree:
        """Return what the whole box draws and may draw; `watts` is the reading of a sensor that is known to mean it."""
        if "EnvironmentMetrics" in self._chassis:
            metrics = self._bmc.follow(self._chassis, "EnvironmentMetrics")
            mode = metrics.get("PowerLimitWatts", {}).get("ControlMode", "Automatic")
            limit = None if mode == "Disabled" else metrics.get("PowerLimitWatts", {}).get("SetPoint")
            return {"drawn_w": watts or leaf(metrics, "PowerWatts", "Reading"), **_cap(limit)}
        control: Resource = next(iter(self._power.get("PowerControl", [])), {})
        limit = (control.get("PowerLimit") or {}).get("LimitInWatts") if not watts else None
        return {"drawn_w": watts or leaf(control, "PowerConsumedWatts"), **_cap(limit)}

    def voltages(self) -> list[Resource]:
        """Return the voltages of the older schema as the newer one's sensors."""
        return [
            {**one, "Id": one.get("Name"), "ReadingType": "Voltage", "Reading": one.get("ReadingVolts")}
            for one in self._power.get("Voltages", [])
        ]

    def _supply(self, unit: Resource) -> Tree:
        metrics = self._bmc.follow(unit, "Metrics") if "Metrics" in unit else {"@odata.id": unit.get("@odata.id")}
        return {
            **_common(unit),
            "input_v": leaf(metrics, "InputVoltage", "Reading"),
            "output_w": leaf(metrics, "OutputPowerWatts", "Reading"),
        }


def redundancy(groups: list[Resource]) -> Tree:
    """Return the readings of redundancy groups by their number."""
    return {
        str(number): {"health": leaf(group, "Status", "Health"), "needed": _needed(group)}
        for number, group in enumerate(groups)
    }


def _needed(group: Resource) -> dict[str, Any]:
    return leaf(group, "MinNeededInGroup" if "MinNeededInGroup" in group else "MinNumNeeded")


def _cap(limit: Any) -> Tree:
    return {"capped": value(bool(limit)), "cap_w": value(limit) if limit else absent("no cap is set")}


def _common(unit: Resource) -> Tree:
    return {
        "state": leaf(unit, "Status", "State"),
        "health": leaf(unit, "Status", "Health"),
        "input": leaf(unit, "LineInputStatus"),
        "serial": leaf(unit, "SerialNumber"),
    }


def _old_supply(unit: Resource) -> Tree:
    return {
        **_common(unit),
        "input_v": leaf(unit, "LineInputVoltage"),
        "output_w": leaf(unit, "PowerOutputWatts" if "PowerOutputWatts" in unit else "LastPowerOutputWatts"),
    }
