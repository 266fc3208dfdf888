"""The chassis: its lid, its power supplies, what it draws."""

from __future__ import annotations

from typing import Any

from assay.lab.bmc import health
from assay.lab.bmc.power import is_on
from assay.lab.bmc.tree import Resource, View, collection, link, resource, slot, status

PATH = "/Chassis/Chassis_0"
POWER, SUPPLIES = f"{PATH}/PowerSubsystem", f"{PATH}/PowerSubsystem/PowerSupplies"
METRICS = f"{PATH}/EnvironmentMetrics"
THERMAL, FANS = f"{PATH}/ThermalSubsystem", f"{PATH}/ThermalSubsystem/Fans"
INPUT_V = (180, 264)


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
        Status=health.rolled(health.node(state)),
        PhysicalSecurity={"IntrusionSensor": state["box"]["lid"], "IntrusionSensorReArm": "Manual"},
        EnvironmentMetrics=link(METRICS),
        PowerSubsystem=link(POWER),
        ThermalSubsystem=link(THERMAL),
        Sensors=link(f"{PATH}/Sensors"),
        Links={"ComputerSystems": [link("/Systems/System_0")], "ManagedBy": [link("/Managers/BMC_0")]},
    )


def power_subsystem(view: View) -> Resource:
    """The power subsystem."""
    level = health.power(view.state)
    units = [link(f"{SUPPLIES}/{n}") for n in range(len(view.state["psus"]))]
    group = {"RedundancyType": "NPlusM", "RedundancyGroup": units, "MinNeededInGroup": max(1, len(units) - 2)}
    return resource(
        "PowerSubsystem",
        "1_1_2",
        "PowerSubsystem",
        "Power",
        PowerSupplies=link(SUPPLIES),
        Status=health.rolled(level),
        **({"PowerSupplyRedundancy": [{**group, "Status": health.rolled(level)}]} if units else {}),
    )


def environment(view: View) -> Resource:
    """What the whole box draws, and the cap on it, if there is one."""
    cap = view.state["box"]["power_cap_w"]
    limit = {"ControlMode": "Automatic", "SetPoint": cap} if cap else {"ControlMode": "Disabled", "SetPoint": None}
    return resource(
        "EnvironmentMetrics",
        "1_3_1",
        "EnvironmentMetrics",
        "Environment metrics",
        PowerWatts={"Reading": drawn_w(view.state), "DataSourceUri": link(f"{PATH}/Sensors/PWR_SYSTEM")["@odata.id"]},
        PowerLimitWatts=limit,
    )


def drawn_w(state: dict[str, Any]) -> float:
    """Return the watts that the box draws: what its supplies give, or, fed by a busbar, what its GPUs and CPUs take."""
    given = sum(float(psu["output_w"]) for psu in state["psus"] if psu.get("present", True))
    if state["psus"]:
        return given
    return 400.0 * len(state["box"]["cpus"]) + sum(float(gpu["power_w"]) for gpu in state["gpus"] if is_on(state))


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
        Status=part_status(psu),
        LineInputStatus=_input(psu),
        PowerCapacityWatts=3300,
        **({"SerialNumber": psu["serial"]} if psu.get("serial") and psu.get("present", True) else {}),
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
        Status=part_status(psu),
        InputVoltage={"Reading": psu["input_v"] if present else None},
        OutputPowerWatts={"Reading": psu["output_w"] if present else None},
    )


def part_status(part: dict[str, Any]) -> dict[str, str | None]:
    """Return the Status of a supply or a fan, Absent where its bay is empty."""
    if not part.get("present", True):
        return status(None, "Absent")
    return status(part.get("health", "OK"))


def _input(psu: dict[str, Any]) -> str:
    """Return LineInputStatus, by the range that such supplies take."""
    if not psu["input_v"]:
        return "LossOfInput"
    return "Normal" if INPUT_V[0] <= psu["input_v"] <= INPUT_V[1] else "OutOfRange"
