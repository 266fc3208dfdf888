"""The chassis as resources: lid, power supplies and power draw, fans, inlet temperature, leak detectors, sensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from assay.lab.bmc import virtual_bmc
from assay.lab.bmc.power_transitions import is_powered_on
from assay.lab.bmc.resource_tree import (
    Resource,
    ResourceView,
    find_numbered_item,
    make_collection,
    make_resource,
    make_status,
    resource_link,
)
from assay.lab.virtual_node_state import VirtualNodeState

CHASSIS_PATH = "/Chassis/Chassis_0"
POWER = f"{CHASSIS_PATH}/PowerSubsystem"
SUPPLIES = f"{POWER}/PowerSupplies"
METRICS = f"{CHASSIS_PATH}/EnvironmentMetrics"
THERMAL = f"{CHASSIS_PATH}/ThermalSubsystem"
FANS = f"{THERMAL}/Fans"
LEAKS = f"{THERMAL}/LeakDetection"
DETECTORS = f"{LEAKS}/LeakDetectors"
INPUT_V = (180, 264)
UNITS = {"Temperature": "Cel", "Power": "W", "Voltage": "V", "Rotational": "{rev}/min"}
UPPER = ("UpperCaution", "UpperCritical")
LOWER = ("LowerCaution", "LowerCritical")


def chassis(view: ResourceView) -> Resource:
    """The chassis, with its place in the rack."""
    state = view.state
    placement = {"Rack": state.get("rack", ""), "RackOffset": state.get("u", 0), "RackOffsetUnits": "EIA_310"}
    return make_resource(
        "Chassis.v1_25_0",
        "Chassis_0",
        "Chassis",
        ChassisType="RackMount",
        Model=state["product"],
        SerialNumber=state["serial"],
        PowerState="On" if is_powered_on(state) else "Off",
        Location={"Placement": placement},
        Status=virtual_bmc.rollup_status(virtual_bmc.node_health(state)),
        PhysicalSecurity={"IntrusionSensor": state["box"]["lid"], "IntrusionSensorReArm": "Manual"},
        EnvironmentMetrics=resource_link(METRICS),
        PowerSubsystem=resource_link(POWER),
        ThermalSubsystem=resource_link(THERMAL),
        Sensors=resource_link(f"{CHASSIS_PATH}/Sensors"),
        Links={
            "ComputerSystems": [resource_link("/Systems/System_0")],
            "ManagedBy": [resource_link("/Managers/BMC_0")],
        },
    )


def power_subsystem(view: ResourceView) -> Resource:
    """The power subsystem."""
    level = virtual_bmc.power_health(view.state)
    units = [resource_link(f"{SUPPLIES}/{n}") for n in range(len(view.state["psus"]))]
    group = {"RedundancyType": "NPlusM", "RedundancyGroup": units, "MinNeededInGroup": max(1, len(units) - 2)}
    return make_resource(
        "PowerSubsystem.v1_1_2",
        "PowerSubsystem",
        "Power",
        PowerSupplies=resource_link(SUPPLIES),
        Status=virtual_bmc.rollup_status(level),
        **({"PowerSupplyRedundancy": [{**group, "Status": virtual_bmc.rollup_status(level)}]} if units else {}),
    )


def environment(view: ResourceView) -> Resource:
    """The power draw of the whole chassis, and its power cap."""
    cap = view.state["box"]["power_cap_w"]
    limit = {"ControlMode": "Automatic", "SetPoint": cap} if cap else {"ControlMode": "Disabled", "SetPoint": None}
    return make_resource(
        "EnvironmentMetrics.v1_3_1",
        "EnvironmentMetrics",
        "Environment metrics",
        PowerWatts={
            "Reading": drawn_watts(view.state),
            "DataSourceUri": resource_link(f"{CHASSIS_PATH}/Sensors/PWR_SYSTEM")["@odata.id"],
        },
        PowerLimitWatts=limit,
    )


def drawn_watts(state: dict[str, Any]) -> float:
    """Return the power draw in watts: the output of its supplies or, on a busbar, the draw of GPUs and CPUs."""
    if state["psus"]:
        return sum(float(psu["output_w"]) for psu in state["psus"] if psu.get("present", True))
    return 400.0 * len(state["box"]["cpus"]) + sum(
        float(gpu["power_w"]) for gpu in state["gpus"] if is_powered_on(state)
    )


def supply(view: ResourceView, number: str) -> Resource:
    """One power supply bay."""
    psu = find_numbered_item(view.state["psus"], number)
    line_input = "LossOfInput"
    if psu["input_v"]:
        line_input = "Normal" if INPUT_V[0] <= psu["input_v"] <= INPUT_V[1] else "OutOfRange"
    return make_resource(
        "PowerSupply.v1_6_0",
        number,
        f"PSU {number}",
        Status=part_status(psu),
        LineInputStatus=line_input,
        PowerCapacityWatts=3300,
        **({"SerialNumber": psu["serial"]} if psu.get("serial") and psu.get("present", True) else {}),
        Metrics=resource_link(f"{SUPPLIES}/{number}/Metrics"),
        Location={"PartLocation": {"ServiceLabel": f"PSU{number}", "LocationType": "Bay"}},
    )


def supply_metrics(view: ResourceView, number: str) -> Resource:
    """Input voltage and output power of a power supply; null for an empty bay."""
    psu = find_numbered_item(view.state["psus"], number)
    present = psu.get("present", True)
    return make_resource(
        "PowerSupplyMetrics.v1_1_2",
        "Metrics",
        f"PSU {number} metrics",
        Status=part_status(psu),
        InputVoltage={"Reading": psu["input_v"] if present else None},
        OutputPowerWatts={"Reading": psu["output_w"] if present else None},
    )


def part_status(part: dict[str, Any]) -> dict[str, str | None]:
    """Return the Status of a supply or a fan; Absent for an empty bay."""
    if not part.get("present", True):
        return make_status(None, "Absent")
    return make_status(part.get("health", "OK"))


def thermal_subsystem(view: ResourceView) -> Resource:
    """The thermal subsystem, with leak detection only on liquid-cooled nodes."""
    fans = [resource_link(f"{FANS}/{n}") for n in range(len(view.state["fans"]))]
    group = {"RedundancyType": "NPlusM", "RedundancyGroup": fans, "MinNeededInGroup": max(1, len(fans) - 1)}
    return make_resource(
        "ThermalSubsystem.v1_3_2",
        "ThermalSubsystem",
        "Thermal",
        Fans=resource_link(FANS),
        FanRedundancy=[
            {
                **group,
                "Status": virtual_bmc.rollup_status(
                    virtual_bmc.worst_health(fan["health"] for fan in view.state["fans"])
                ),
            }
        ],
        ThermalMetrics=resource_link(f"{THERMAL}/ThermalMetrics"),
        Status=virtual_bmc.rollup_status(virtual_bmc.cooling_health(view.state)),
        **({"LeakDetection": resource_link(LEAKS)} if view.state["box"]["leaks"] else {}),
    )


def fan(view: ResourceView, number: str) -> Resource:
    """One fan."""
    part = find_numbered_item(view.state["fans"], number)
    speed = {
        "SpeedRPM": part["rpm"],
        "DataSourceUri": resource_link(f"{CHASSIS_PATH}/Sensors/FAN_{number}_SPEED")["@odata.id"],
    }
    return make_resource("Fan.v1_5_2", number, f"Fan {number}", Status=part_status(part), SpeedPercent=speed)


def thermal_metrics(view: ResourceView) -> Resource:
    """The inlet air temperature."""
    source = resource_link(f"{CHASSIS_PATH}/Sensors/TEMP_INLET")["@odata.id"]
    intake = {"Reading": view.state["inlet_c"], "DataSourceUri": source}
    return make_resource(
        "ThermalMetrics.v1_3_2",
        "ThermalMetrics",
        "Thermal metrics",
        TemperatureSummaryCelsius={"Intake": intake},
        TemperatureReadingsCelsius=[{**intake, "DeviceName": "Inlet"}],
    )


def leak_detection(view: ResourceView) -> Resource:
    """Leak detection as a whole."""
    if not view.state["box"]["leaks"]:
        raise LookupError(LEAKS)
    return make_resource(
        "LeakDetection.v1_1_0",
        "LeakDetection",
        "Leak detection",
        Status=virtual_bmc.rollup_status(virtual_bmc.leak_health(view.state)),
        LeakDetectors=resource_link(DETECTORS),
    )


def detectors(view: ResourceView) -> Resource:
    """All leak detectors."""
    count = len(view.state["box"]["leaks"])
    if not count:
        raise LookupError(DETECTORS)
    return make_collection("LeakDetector", "Leak detectors", [f"{DETECTORS}/LEAK_{n}" for n in range(count)])


def detector(view: ResourceView, ident: str) -> Resource:
    """One leak detector."""
    level = find_numbered_item(view.state["box"]["leaks"], ident, "LEAK_")["state"]
    return make_resource(
        "LeakDetector.v1_2_0",
        ident,
        ident,
        LeakDetectorType="Moisture",
        DetectorState=level,
        Status={"State": "Enabled", "Health": virtual_bmc.LEAK[level]},
    )


class ChassisSensor(NamedTuple):
    """One sensor. `high` and `low` are (caution, critical) thresholds. `value` None: nothing to measure."""

    name: str
    kind: str
    value: float | None
    high: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    place: str = "SystemBoard"


def sensors(view: ResourceView) -> Resource:
    """Every sensor."""
    paths = [f"{CHASSIS_PATH}/Sensors/{entry.name}" for entry in _sensors(view.state)]
    return make_collection("Sensor", "Sensors", paths)


def sensor(view: ResourceView, ident: str) -> Resource:
    """One sensor; Reading is null if there is nothing to measure."""
    measured = next(entry for entry in _sensors(view.state) if entry.name == ident)
    status = make_status() if measured.value is not None else make_status(None, "UnavailableOffline")
    bounds = {**dict(zip(UPPER, measured.high, strict=False)), **dict(zip(LOWER, measured.low, strict=False))}
    thresholds = {name: {"Reading": bound} for name, bound in bounds.items()}
    return make_resource(
        "Sensor.v1_10_0",
        ident,
        ident,
        ReadingType=measured.kind,
        Reading=measured.value,
        ReadingUnits=UNITS[measured.kind],
        PhysicalContext=measured.place,
        Status=status,
        **({"Thresholds": thresholds} if thresholds else {}),
    )


def _sensors(state: VirtualNodeState) -> Iterator[ChassisSensor]:
    """Yield all sensors. Those on the system's power have no value while the system is off."""
    yield from _board(state)
    for gpu in state.get("gpus", []):
        readable = is_powered_on(state) and gpu["present"] and not gpu["lost"]
        name = f"HGX_GPU_SXM_{gpu['index'] + 1}"
        temperature: Any = gpu["temperature_c"] if readable else None
        yield ChassisSensor(f"{name}_TEMP_0", "Temperature", temperature, (85, 88), (), "GPU")
        yield ChassisSensor(f"{name}_POWER_0", "Power", gpu["power_w"] if readable else None, (), (), "GPU")
    for number, fan in enumerate(state["fans"]):
        yield ChassisSensor(f"FAN_{number}_SPEED", "Rotational", fan["rpm"], (), (), "Fan")
    for number, psu in enumerate(state["psus"]):
        present = psu.get("present", True)
        volts, watts = (psu["input_v"], psu["output_w"]) if present else (None, None)
        yield ChassisSensor(f"PSU_{number}_INPUT_VOLTAGE", "Voltage", volts, (264,), (180,), "PowerSupply")
        yield ChassisSensor(f"PSU_{number}_OUTPUT_POWER", "Power", watts, (3300,), (), "PowerSupply")


def _board(state: VirtualNodeState) -> Iterator[ChassisSensor]:
    """Yield the sensors of the main board, with the thresholds of a recorded DGX H100."""
    on = is_powered_on(state)
    inlet = state["inlet_c"]
    yield ChassisSensor("TEMP_INLET", "Temperature", inlet, (37, 40), (), "Intake")
    yield ChassisSensor("TEMP_OUTLET", "Temperature", inlet + 14 if on else None, (75, 80), (), "Exhaust")
    for number, _ in enumerate(state["box"]["cpus"]):
        yield ChassisSensor(f"TEMP_CPU_{number}", "Temperature", inlet + 24 if on else None, (94, 98), (), "CPU")
        yield ChassisSensor(
            f"TEMP_DIMM_CPU_{number}", "Temperature", inlet + 12 if on else None, (83, 85), (), "Memory"
        )
    board = state["box"].get("volts", {})
    yield ChassisSensor("VOLT_12V", "Voltage", board.get("12V", 12.03), (12.59, 13.21), (11.41, 10.79))
    yield ChassisSensor("VOLT_3V_BATTERY", "Voltage", board.get("3V", 3.03), (3.47, 3.63), (2.6, 2.4))
    yield ChassisSensor("PWR_SYSTEM", "Power", drawn_watts(state), (19890,), (), "Chassis")
