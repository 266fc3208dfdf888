"""The chassis: power supplies, fans, temperatures."""

from __future__ import annotations

from typing import Any

from assay.lab.bmc.power import is_on
from assay.lab.bmc.systems import health
from assay.lab.bmc.tree import Resource, View, collection, link, resource, slot, status

PATH = "/Chassis/Chassis_0"
POWER, SUPPLIES = f"{PATH}/PowerSubsystem", f"{PATH}/PowerSubsystem/PowerSupplies"
THERMAL, FANS = f"{PATH}/ThermalSubsystem", f"{PATH}/ThermalSubsystem/Fans"


def all_chassis(_: View) -> Resource:
    """The one chassis."""
    return collection("Chassis", "Chassis", [PATH])


def chassis(view: View) -> Resource:
    """The box, with its place."""
    state = view.state
    placement = {"Rack": state.get("rack", ""), "RackOffset": state.get("u", 0), "RackOffsetUnits": "EIA_310"}
    return resource(
        "Chassis",
        "1_25_0",
        "Chassis_0",
        "Chassis",
        ChassisType="RackMount",
        Model=state["product"],
        SerialNumber=state["serial"],
        PowerState="On" if is_on(state) else "Off",
        Location={"Placement": placement},
        Status=status(health(state)),
        PowerSubsystem=link(POWER),
        ThermalSubsystem=link(THERMAL),
        Sensors=link(f"{PATH}/Sensors"),
        Links={"ComputerSystems": [link("/Systems/System_0")], "ManagedBy": [link("/Managers/BMC_0")]},
    )


def power_subsystem(view: View) -> Resource:
    """The power subsystem."""
    return resource(
        "PowerSubsystem",
        "1_1_2",
        "PowerSubsystem",
        "Power",
        PowerSupplies=link(SUPPLIES),
        Status=status(health(view.state)),
    )


def supplies(view: View) -> Resource:
    """All power supply bays, also the empty ones."""
    return collection("PowerSupply", "Power supplies", [f"{SUPPLIES}/{n}" for n in range(len(view.state["psus"]))])


def supply(view: View, number: str) -> Resource:
    """One power supply bay."""
    psu = slot(view.state["psus"], number)
    return resource(
        "PowerSupply",
        "1_6_0",
        number,
        f"PSU {number}",
        Status=_part(psu),
        LineInputStatus="Normal" if psu["input_v"] else "LossOfInput",
        PowerCapacityWatts=3300,
        Metrics=link(f"{SUPPLIES}/{number}/Metrics"),
        Location={"PartLocation": {"ServiceLabel": f"PSU{number}", "LocationType": "Bay"}},
    )


def supply_metrics(view: View, number: str) -> Resource:
    """What a power supply takes and gives; null where the bay is empty."""
    psu = slot(view.state["psus"], number)
    present = psu.get("present", True)
    return resource(
        "PowerSupplyMetrics",
        "1_1_2",
        "Metrics",
        f"PSU {number} metrics",
        Status=_part(psu),
        InputVoltage={"Reading": psu["input_v"] if present else None},
        OutputPowerWatts={"Reading": psu["output_w"] if present else None},
    )


def thermal_subsystem(view: View) -> Resource:
    """The thermal subsystem."""
    return resource(
        "ThermalSubsystem",
        "1_3_2",
        "ThermalSubsystem",
        "Thermal",
        Fans=link(FANS),
        ThermalMetrics=link(f"{THERMAL}/ThermalMetrics"),
        Status=status(health(view.state)),
    )


def fans(view: View) -> Resource:
    """All fans."""
    return collection("Fan", "Fans", [f"{FANS}/{n}" for n in range(len(view.state["fans"]))])


def fan(view: View, number: str) -> Resource:
    """One fan."""
    part = slot(view.state["fans"], number)
    speed = {"SpeedRPM": part["rpm"], "DataSourceUri": link(f"{PATH}/Sensors/FAN_{number}_SPEED")["@odata.id"]}
    return resource("Fan", "1_5_2", number, f"Fan {number}", Status=_part(part), SpeedPercent=speed)


def thermal_metrics(view: View) -> Resource:
    """The temperature of the air that comes in."""
    source = link(f"{PATH}/Sensors/TEMP_INLET")["@odata.id"]
    intake = {"Reading": view.state["inlet_c"], "DataSourceUri": source}
    return resource(
        "ThermalMetrics",
        "1_3_2",
        "ThermalMetrics",
        "Thermal metrics",
        TemperatureSummaryCelsius={"Intake": intake},
        TemperatureReadingsCelsius=[{**intake, "DeviceName": "Inlet"}],
    )


def _part(part: dict[str, Any]) -> dict[str, str | None]:
    if not part.get("present", True):
        return status(None, "Absent")
    return status(part.get("health", "OK"))
