"""The chassis' sensors, made of the node's state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from assay.lab.bmc.chassis import PATH
from assay.lab.bmc.power import is_on
from assay.lab.bmc.tree import Resource, View, collection, resource, status
from assay.lab.world import State

Reading = tuple[str, str, Any, str]


def sensors(view: View) -> Resource:
    """Every sensor."""
    return collection("Sensor", "Sensors", [f"{PATH}/Sensors/{name}" for name, *_ in _readings(view.state)])


def sensor(view: View, ident: str) -> Resource:
    """One sensor; Reading is null where nothing is there to be measured."""
    kind, value, units = next(entry[1:] for entry in _readings(view.state) if entry[0] == ident)
    health = status() if value is not None else status(None, "UnavailableOffline")
    return resource(
        "Sensor", "1_10_0", ident, ident, ReadingType=kind, Reading=value, ReadingUnits=units, Status=health
    )


def _readings(state: State) -> Iterator[Reading]:
    """(id, ReadingType, value, units). What runs on the system's power reads nothing while it is off."""
    powered = is_on(state)
    yield "TEMP_INLET", "Temperature", state["inlet_c"], "Cel"
    for gpu in state.get("gpus", []):
        seen = powered and gpu["present"] and not gpu["lost"]
        number = gpu["index"] + 1
        yield f"HGX_GPU_SXM_{number}_TEMP_0", "Temperature", gpu["temperature_c"] if seen else None, "Cel"
        yield f"HGX_GPU_SXM_{number}_POWER_0", "Power", gpu["power_w"] if seen else None, "W"
    for number, fan in enumerate(state["fans"]):
        yield f"FAN_{number}_SPEED", "Rotational", fan["rpm"], "{rev}/min"
    for number, psu in enumerate(state["psus"]):
        present = psu.get("present", True)
        yield f"PSU_{number}_INPUT_VOLTAGE", "Voltage", psu["input_v"] if present else None, "V"
        yield f"PSU_{number}_OUTPUT_POWER", "Power", psu["output_w"] if present else None, "W"
