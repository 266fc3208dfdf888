"""BIOS attributes and boot settings of a node, as its BMC tells of them.

Processors and memory of a node, as its BMC tells of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from assay.model.reading import ReadingTree, failed, value
from assay.redfish.errors import BmcResourceMissing
from assay.redfish.property_readings import Resource, read_by_id, read_property
from assay.redfish.session import RedfishSession


def read_processors(bmc: RedfishSession, systems: Iterable[Resource]) -> ReadingTree:
    """Return kind (`cpu`, `gpu`, …) → id → readings, over the host and the board of the GPUs."""
    tree: ReadingTree = {}
    for system in systems:
        if "Processors" in system:
            for one in bmc.members(bmc.follow(system, "Processors", 1)):
                kind = str(one.get("ProcessorType") or "other").lower()
                tree.setdefault(kind, {}).update(read_by_id([one], _processor))
    return tree


def read_memory_modules(bmc: RedfishSession, system: Resource) -> ReadingTree:
    """Return slot → readings of the memory module in it."""
    return read_by_id(bmc.members(bmc.follow(system, "Memory", 1)), _module)


def _processor(one: Resource) -> ReadingTree:
    return {"model": read_property(one, "Model"), "health": read_property(one, "Status", "Health")}


def _module(one: Resource) -> ReadingTree:
    return {"gib": _gib(one), "health": read_property(one, "Status", "Health")}


def _gib(one: Resource) -> dict[str, Any]:
    size = read_property(one, "CapacityMiB")
    return value(size["value"] / 1024) if "value" in size else size


def read_bios(bmc: RedfishSession, system: Resource) -> ReadingTree:
    """Return attribute → reading of its value. What is called a password is not even looked at."""
    attributes = bmc.follow(system, "Bios").get("Attributes")
    if not isinstance(attributes, dict):
        raise BmcResourceMissing("the BIOS shows no attributes", where=bmc.where)
    return {
        name: failed("the BMC does not know this attribute (null)") if content is None else value(content)
        for name, content in attributes.items()
        if "password" not in name.lower()
    }


def read_pending_bios(bmc: RedfishSession, system: Resource) -> ReadingTree:
    """Return attribute → reading of the value that waits for a reset; empty where nothing waits."""
    now = bmc.follow(system, "Bios")
    place = now.get("@Redfish.Settings", {}).get("SettingsObject")
    if not place:
        raise BmcResourceMissing("the BIOS names no settings object", where=bmc.where)
    wanted = bmc.get(place["@odata.id"]).get("Attributes") or {}
    runs = now.get("Attributes") or {}
    return {
        name: value(content)
        for name, content in wanted.items()
        if content is not None and content != runs.get(name) and "password" not in name.lower()
    }


def read_boot(bmc: RedfishSession, system: Resource) -> ReadingTree:
    """Return order (names of what is booted from, first first), override, mode and whether secure boot is in force."""
    return {
        "order": _order(bmc, system),
        "override": read_property(system, "Boot", "BootSourceOverrideEnabled"),
        "override_target": read_property(system, "Boot", "BootSourceOverrideTarget"),
        "mode": read_property(system, "Boot", "BootSourceOverrideMode"),
        "secure": _secure(bmc, system),
    }


def _order(bmc: RedfishSession, system: Resource) -> dict[str, Any]:
    """Return the boot order by the names that people see, where the BMC tells them, else by its references."""
    order = read_property(system, "Boot", "BootOrder")
    if "value" not in order or "BootOptions" not in system["Boot"]:
        return order
    options = bmc.members(bmc.follow(system["Boot"], "BootOptions", 1))
    names = {one.get("BootOptionReference"): one.get("DisplayName") for one in options}
    return value([names.get(reference) or reference for reference in order["value"]])


def _secure(bmc: RedfishSession, system: Resource) -> dict[str, Any]:
    if "SecureBoot" not in system:
        return read_property(system, "SecureBoot")
    current = read_property(bmc.follow(system, "SecureBoot"), "SecureBootCurrentBoot")
    return value(current["value"] == "Enabled") if "value" in current else current
