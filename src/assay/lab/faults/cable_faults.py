"""Cables of a node that are plugged wrong or not at all, or that are slow. A docstring is a line of `inject list`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from assay.lab.fabric.cabling import repair_cabling, slow_cable, swap_cables, unplug_cable
from assay.lab.world import LabWorld


def cable_swapped(world: LabWorld, node: str, hca: str, other: str) -> None:
    """An adapter's cable, swapped with that of another end, such as n0006/mlx5_3 or leaf-su01-r0[33]."""
    swap_cables(world, f"{node}/{hca}", other)


def cable_unplugged(world: LabWorld, node: str, hca: str) -> None:
    """An adapter without its cable."""
    unplug_cable(world, f"{node}/{hca}")


def cable_slow(world: LabWorld, node: str, hca: str, rate: str = "4xHDR") -> None:
    """An adapter's cable that came up at a lower rate."""
    slow_cable(world, f"{node}/{hca}", rate)


def cables_repaired(world: LabWorld, node: str) -> None:
    """All cables of the fabrics as they are designed."""
    del node
    repair_cabling(world)


CABLE_FAULTS: Mapping[str, Callable[..., None]] = {
    "cable.slow": cable_slow,
    "cable.swapped": cable_swapped,
    "cable.unplugged": cable_unplugged,
    "cables.repaired": cables_repaired,
}
