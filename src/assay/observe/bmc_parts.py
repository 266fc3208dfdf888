"""Processors and memory of a node, as its BMC tells of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from assay.model.reading import value
from assay.observe.bmc_leaves import Resource, Tree, leaf, named
from assay.observe.session import Session


def processors(bmc: Session, systems: Iterable[Resource]) -> Tree:
    """Return kind (`cpu`, `gpu`, …) → id → readings, over the host and the board of the GPUs."""
    tree: Tree = {}
    for system in systems:
        if "Processors" in system:
            for one in bmc.members(bmc.follow(system, "Processors", 1)):
                kind = str(one.get("ProcessorType") or "other").lower()
                tree.setdefault(kind, {}).update(named([one], _processor))
    return tree


def memory(bmc: Session, system: Resource) -> Tree:
    """Return slot → readings of the memory module in it."""
    return named(bmc.members(bmc.follow(system, "Memory", 1)), _module)


def _processor(one: Resource) -> Tree:
    return {"model": leaf(one, "Model"), "health": leaf(one, "Status", "Health")}


def _module(one: Resource) -> Tree:
    return {"gib": _gib(one), "health": leaf(one, "Status", "Health")}


def _gib(one: Resource) -> dict[str, Any]:
    size = leaf(one, "CapacityMiB")
    return value(size["value"] / 1024) if "value" in size else size
