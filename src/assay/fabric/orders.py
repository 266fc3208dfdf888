"""What a technician is told to do, in order, and what is likely behind it."""

from __future__ import annotations

from collections.abc import Sequence

from assay.fabric.discrepancy import Discrepancy, Kind

CAUSES: dict[Kind, str] = {
    "swap": "plugs were put into each other's ports",
    "moved": "a plug was put into the wrong port",
    "missing": "the cable is unplugged, not seated, or broken; or a port or transceiver at one end is",
    "disabled": "somebody disabled the port",
    "unexpected": "a cable was laid that nobody wrote into the design, or was left behind",
    "degraded": "a dirty or badly seated plug, or a worn cable: the link fell back to a rate that it can hold",
    "device-missing": "it has no power, does not run, or was taken away",
    "device-unknown": "a device was connected that nobody wrote into the design",
    "device-replaced": "the device, or its adapter, was replaced",
    "device-exchanged": "the devices, or all of their cables, or their entries in the inventory are exchanged",
}


def cause(one: Discrepancy) -> str:
    """Return the likely cause."""
    said = CAUSES[one.kind]
    if one.because:
        said += f"; likelier: {one.corrections[0]}, since {one.because}"
    return f"{said}; meanwhile {one.costs}" if one.costs else said


def steps(members: Sequence[Discrepancy], design: str, beside: Sequence[str]) -> list[str]:
    """Return what to do, what else goes down first, the likelier way before the other, the proof last."""
    said = ["other links share the cages and go down with the plugs: tell those who use them"] if beside else []
    for one in members:
        said += [*_hands(one), *one.steps]
    said.append(f"then assay fabric scan {design}: this ticket closes when the scan finds it as designed")
    return list(dict.fromkeys(said))


def _hands(one: Discrepancy) -> list[str]:
    """Return what to look at before anything is moved."""
    if one.kind == "swap":
        return ["read the labels of the cables at both ends: they tell which way of the two it was"]
    if one.kind in ("missing", "degraded"):
        cable = one.cables[0].expected
        return [f"look at the port's light and the plug at {cable.a} and at {cable.b}"] if cable else []
    if one.kind == "device-exchanged":
        return ["read serial number and GUID from the label of either device, and compare them with the inventory"]
    return []
