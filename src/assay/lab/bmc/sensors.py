"""The sensors of the chassis as resources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from assay.lab.bmc.chassis import CHASSIS_PATH, drawn_watts
from assay.lab.bmc.power_transitions import is_powered_on
from assay.lab.bmc.resource_tree import Resource, ResourceView, make_collection, make_resource, make_status
from assay.lab.virtual_node_state import VirtualNodeState

UNITS = {"Temperature": "Cel", "Power": "W", "Voltage": "V", "Rotational": "{rev}/min"}
UPPER, LOWER = ("UpperCaution", "UpperCritical"), ("LowerCaution", "LowerCritical")


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
    found = next(entry for entry in _sensors(view.state) if entry.name == ident)
    status = make_status() if found.value is not None else make_status(None, "UnavailableOffline")
    bounds = {**dict(zip(UPPER, found.high, strict=False)), **dict(zip(LOWER, found.low, strict=False))}
    thresholds = {name: {"Reading": bound} for name, bound in bounds.items()}
    return make_resource(
        "Sensor",
        "1_10_0",
        ident,
        ident,
        ReadingType=found.kind,
        Reading=found.value,
        ReadingUnits=UNITS[found.kind],
        PhysicalContext=found.place,
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
