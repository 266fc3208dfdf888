"""The chassis' sensors, made of the node's state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from assay.lab.bmc.chassis import PATH, drawn_w
from assay.lab.bmc.power import is_on
from assay.lab.bmc.tree import Resource, View, collection, resource, status
from assay.lab.world import State

UNITS = {"Temperature": "Cel", "Power": "W", "Voltage": "V", "Rotational": "{rev}/min"}
UPPER, LOWER = ("UpperCaution", "UpperCritical"), ("LowerCaution", "LowerCritical")


class Sensor(NamedTuple):
    """One sensor. `low` and `high` are its own (caution, critical) thresholds; value None where nothing is there."""

    name: str
    kind: str
    value: float | None
    high: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    place: str = "SystemBoard"


def sensors(view: View) -> Resource:
    """Every sensor."""
    return collection("Sensor", "Sensors", [f"{PATH}/Sensors/{one.name}" for one in _sensors(view.state)])


def sensor(view: View, ident: str) -> Resource:
    """One sensor; Reading is null where nothing is there to be measured."""
    one = next(entry for entry in _sensors(view.state) if entry.name == ident)
    known = status() if one.value is not None else status(None, "UnavailableOffline")
    bounds = {**dict(zip(UPPER, one.high, strict=False)), **dict(zip(LOWER, one.low, strict=False))}
    thresholds = {name: {"Reading": bound} for name, bound in bounds.items()}
    return resource(
        "Sensor",
        "1_10_0",
        ident,
        ident,
        ReadingType=one.kind,
        Reading=one.value,
        ReadingUnits=UNITS[one.kind],
        PhysicalContext=one.place,
        Status=known,
        **({"Thresholds": thresholds} if thresholds else {}),
    )


def _sensors(state: State) -> Iterator[Sensor]:
    """What runs on the system's power reads nothing while it is off."""
    yield from _board(state)
    for gpu in state.get("gpus", []):
        seen = is_on(state) and gpu["present"] and not gpu["lost"]
        name = f"HGX_GPU_SXM_{gpu['index'] + 1}"
        heat: Any = gpu["temperature_c"] if seen else None
        yield Sensor(f"{name}_TEMP_0", "Temperature", heat, (85, 88), (), "GPU")
        yield Sensor(f"{name}_POWER_0", "Power", gpu["power_w"] if seen else None, (), (), "GPU")
    for number, fan in enumerate(state["fans"]):
        yield Sensor(f"FAN_{number}_SPEED", "Rotational", fan["rpm"], (), (), "Fan")
    for number, psu in enumerate(state["psus"]):
        present = psu.get("present", True)
        volts, watts = (psu["input_v"], psu["output_w"]) if present else (None, None)
        yield Sensor(f"PSU_{number}_INPUT_VOLTAGE", "Voltage", volts, (264,), (180,), "PowerSupply")
        yield Sensor(f"PSU_{number}_OUTPUT_POWER", "Power", watts, (3300,), (), "PowerSupply")


def _board(state: State) -> Iterator[Sensor]:
    """Yield what is measured on the main board; thresholds are those of a recorded DGX H100."""
    on = is_on(state)
    inlet = state["inlet_c"]
    yield Sensor("TEMP_INLET", "Temperature", inlet, (37, 40), (), "Intake")
    yield Sensor("TEMP_OUTLET", "Temperature", inlet + 14 if on else None, (75, 80), (), "Exhaust")
    for number, _ in enumerate(state["box"]["cpus"]):
        yield Sensor(f"TEMP_CPU_{number}", "Temperature", inlet + 24 if on else None, (94, 98), (), "CPU")
        yield Sensor(f"TEMP_DIMM_CPU_{number}", "Temperature", inlet + 12 if on else None, (83, 85), (), "Memory")
    board = state["box"].get("volts", {})
    yield Sensor("VOLT_12V", "Voltage", board.get("12V", 12.03), (12.59, 13.21), (11.41, 10.79))
    yield Sensor("VOLT_3V_BATTERY", "Voltage", board.get("3V", 3.03), (3.47, 3.63), (2.6, 2.4))
    yield Sensor("PWR_SYSTEM", "Power", drawn_w(state), (19890,), (), "Chassis")
