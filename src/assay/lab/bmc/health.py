"""How well the areas of a node are: each is as well as the worst of its parts, and the node as its worst area."""

from __future__ import annotations

from collections.abc import Iterable

from assay.lab.bmc.tree import status
from assay.lab.world import State

WORST = ("Critical", "Warning")
LEAK = {"OK": "OK", "Warning": "Warning", "Critical": "Critical"}


def worst(levels: Iterable[str]) -> str:
    """Return the worst of some healths."""
    found = set(levels)
    return next((level for level in WORST if level in found), "OK")


def power(state: State) -> str:
    """Return the health of the power supplies."""
    return worst(psu.get("health", "OK") for psu in state.get("psus", []))


def cooling(state: State) -> str:
    """Return the health of fans and of what looks for leaks."""
    return worst([*(fan.get("health", "OK") for fan in state.get("fans", [])), leaks(state)])


def leaks(state: State) -> str:
    """Return the health of what looks for leaks."""
    return worst(LEAK[leak["state"]] for leak in state["box"]["leaks"])


def processors(state: State) -> str:
    """Return the health of the CPUs."""
    return worst(cpu["health"] for cpu in state["box"]["cpus"])


def memory(state: State) -> str:
    """Return the health of the memory modules."""
    return worst(dimm["health"] for dimm in state["box"]["dimms"])


def node(state: State) -> str:
    """Return the health of the node: the worst there is."""
    return worst((power(state), cooling(state), processors(state), memory(state)))


def rolled(level: str) -> dict[str, str | None]:
    """Return a Status object whose health is rolled up from what is below."""
    return {**status(level), "HealthRollup": level}
