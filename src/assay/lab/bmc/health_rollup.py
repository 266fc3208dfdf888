"""Health rollup of a node: an area has the health of its worst part, the node that of its worst area."""

from __future__ import annotations

from collections.abc import Iterable

from assay.lab.bmc.resource_tree import make_status
from assay.lab.virtual_node_state import VirtualNodeState

WORST = ("Critical", "Warning")
LEAK = {"OK": "OK", "Warning": "Warning", "Critical": "Critical"}


def worst_health(levels: Iterable[str]) -> str:
    """Return the worst of some health levels, OK for none."""
    found = set(levels)
    return next((level for level in WORST if level in found), "OK")


def power_health(state: VirtualNodeState) -> str:
    """Return the health of the power supplies."""
    return worst_health(psu.get("health", "OK") for psu in state.get("psus", []))


def cooling_health(state: VirtualNodeState) -> str:
    """Return the health of fans and leak detectors."""
    return worst_health([*(fan.get("health", "OK") for fan in state.get("fans", [])), leak_health(state)])


def leak_health(state: VirtualNodeState) -> str:
    """Return the health of the leak detectors."""
    return worst_health(LEAK[leak["state"]] for leak in state["box"]["leaks"])


def processor_health(state: VirtualNodeState) -> str:
    """Return the health of the CPUs."""
    return worst_health(cpu["health"] for cpu in state["box"]["cpus"])


def memory_health(state: VirtualNodeState) -> str:
    """Return the health of the memory modules."""
    return worst_health(dimm["health"] for dimm in state["box"]["dimms"])


def node_health(state: VirtualNodeState) -> str:
    """Return the health of the node, that of its worst area."""
    return worst_health((power_health(state), cooling_health(state), processor_health(state), memory_health(state)))


def rollup_status(level: str) -> dict[str, str | None]:
    """Return a Status object with `level` as Health and HealthRollup."""
    return {**make_status(level), "HealthRollup": level}
