"""A BMC's sensors: temperatures, voltages and powers, each with the thresholds that it has of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from assay.model.reading import failed, value
from assay.observe.bmc_leaves import Resource, Tree, branch

KINDS = {"Temperature": ("temperature", "c"), "Voltage": ("voltage", "v"), "Power": ("power", "w")}
"""ReadingType → (branch, the leaf that carries the number and its unit)."""

_UPPER = ("UpperCaution", "UpperCritical", "UpperFatal")
_LOWER = ("LowerCaution", "LowerCritical", "LowerFatal")
_OLD_UPPER = ("UpperThresholdNonCritical", "UpperThresholdCritical", "UpperThresholdFatal")
_OLD_LOWER = ("LowerThresholdNonCritical", "LowerThresholdCritical", "LowerThresholdFatal")
_GONE = ("Absent", "Disabled", "StandbyOffline", "UnavailableOffline")


def sensors(found: Iterable[Resource]) -> Tree:
    """Return kind → id → readings, and `offline`: the ids of those that measure nothing now.

    `high_c` is the lowest upper threshold that a sensor has, `low_v` the highest lower one; a sensor without has none.
    """
    tree: Tree = {name: {} for name, _ in KINDS.values()}
    offline: list[str] = []
    for one in found:
        kind, unit = KINDS.get(str(one.get("ReadingType")), ("", ""))
        if kind and (one.get("Status") or {}).get("State") in _GONE:
            offline.append(str(one.get("Id")))
        elif kind:
            tree[kind][str(one.get("Id"))] = branch(partial(_sensor, one, unit))
    return {**tree, "offline": value(sorted(offline))}


def _sensor(one: Resource, unit: str) -> Tree:
    number = one.get("Reading")
    readings: Tree = {unit: value(number) if number is not None else failed("the sensor reads nothing (null)")}
    if (high := _bound(one, (*_UPPER, *_OLD_UPPER))) is not None:
        readings[f"high_{unit}"] = value(high)
    if (low := _bound(one, (*_LOWER, *_OLD_LOWER))) is not None and unit != "c":
        readings[f"low_{unit}"] = value(low)
    return readings


def _bound(one: Resource, names: Iterable[str]) -> Any:
    """Return the first threshold of these that the sensor has."""
    thresholds = one.get("Thresholds") or {}
    for name in names:
        bound = thresholds.get(name, one.get(name))
        bound = bound.get("Reading") if isinstance(bound, Mapping) else bound
        if bound is not None:
            return bound
    return None
