"""Air and water as a BMC tells of them: fans, the temperature of the inlet, what looks for leaks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.model.reading import unsupported
from assay.observe.bmc_leaves import Resource, Tree, health, leaf, named, numbered
from assay.observe.bmc_power import redundancy
from assay.observe.session import Session

_INTAKE = ("Intake", "RoomIntake")


class Air:
    """The cooling of one chassis, in the schema that the BMC's ways say: ThermalSubsystem, else the older Thermal."""

    def __init__(self, bmc: Session, chassis: Resource) -> None:
        self._bmc = bmc
        newer = "ThermalSubsystem" in chassis and bmc.ways.readings == "subsystems"
        if newer or "Thermal" not in chassis:
            self._thermal = bmc.follow(chassis, "ThermalSubsystem", 3, 2)
        else:
            self._thermal = bmc.follow(chassis, "Thermal")

    def fans(self) -> Tree:
        """Return place → readings of its fan."""
        if isinstance(self._thermal.get("Fans"), list):
            return numbered(self._thermal["Fans"], lambda fan: _fan(fan, leaf(fan, "Reading")))
        fans = self._bmc.members(self._bmc.follow(self._thermal, "Fans", 1))
        return numbered(fans, lambda fan: _fan(fan, leaf(fan, "SpeedPercent", "SpeedRPM")))

    def redundancy(self) -> Tree:
        """Return group → readings: its health, and how many of it are needed."""
        return redundancy(self._thermal.get("FanRedundancy") or self._thermal.get("Redundancy") or [])

    def area(self) -> dict[str, Any]:
        """Return the reading of the area's health."""
        return health(self._thermal)

    def leaks(self) -> Tree:
        """Return detector → readings: OK, Warning or Critical. None are there where no water flows."""
        if "LeakDetection" not in self._thermal:
            return {}
        detection = self._bmc.follow(self._thermal, "LeakDetection", 2, 1)
        found = self._bmc.members(self._bmc.follow(detection, "LeakDetectors", 1))
        return named(found, lambda one: {"state": leaf(one, "DetectorState"), "health": leaf(one, "Status", "Health")})

    def inlet(self) -> dict[str, Any]:
        """Return the temperature of the air that comes in, from the cheapest place that has it."""
        if "ThermalMetrics" in self._thermal:
            metrics = self._bmc.follow(self._thermal, "ThermalMetrics")
            return leaf(metrics, "TemperatureSummaryCelsius", "Intake", "Reading")
        places = [one for one in self._thermal.get("Temperatures", []) if one.get("PhysicalContext") in _INTAKE]
        if len(places) != 1:  # some BMCs mark every sensor they have
            return unsupported(f"{len(places)} temperatures of the chassis are marked as its intake")
        return leaf(places[0], "ReadingCelsius")

    def temperatures(self) -> list[Resource]:
        """Return the temperatures of the older schema as the newer one's sensors."""
        return [
            {**one, "Id": one.get("Name"), "ReadingType": "Temperature", "Reading": one.get("ReadingCelsius")}
            for one in self._thermal.get("Temperatures", [])
        ]


def _fan(fan: Resource, rpm: Mapping[str, Any]) -> Tree:
    return {"health": leaf(fan, "Status", "Health"), "rpm": rpm}
