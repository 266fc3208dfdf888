"""BIOS attributes and boot settings of a node, as its BMC tells of them."""

from __future__ import annotations

from typing import Any

from assay.model.reading import failed, value
from assay.observe.bmc_leaves import Resource, Tree, leaf
from assay.observe.refusal import NotThere
from assay.observe.session import Session


def bios(bmc: Session, system: Resource) -> Tree:
    """Return attribute → reading of its value. What is called a password is not even looked at."""
    attributes = bmc.follow(system, "Bios").get("Attributes")
    if not isinstance(attributes, dict):
        raise NotThere("the BIOS shows no attributes", where=bmc.where)
    return {
        name: failed("the BMC does not know this attribute (null)") if content is None else value(content)
        for name, content in attributes.items()
        if "password" not in name.lower()
    }


def bios_pending(bmc: Session, system: Resource) -> Tree:
    """Return attribute → reading of the value that waits for a reset; empty where nothing waits."""
    now = bmc.follow(system, "Bios")
    place = now.get("@Redfish.Settings", {}).get("SettingsObject")
    if not place:
        raise NotThere("the BIOS names no settings object", where=bmc.where)
    wanted = bmc.get(place["@odata.id"]).get("Attributes") or {}
    runs = now.get("Attributes") or {}
    return {
        name: value(content)
        for name, content in wanted.items()
        if content is not None and content != runs.get(name) and "password" not in name.lower()
    }


def boot(bmc: Session, system: Resource) -> Tree:
    """Return order (names of what is booted from, first first), override, mode and whether secure boot is in force."""
    return {
        "order": _order(bmc, system),
        "override": leaf(system, "Boot", "BootSourceOverrideEnabled"),
        "override_target": leaf(system, "Boot", "BootSourceOverrideTarget"),
        "mode": leaf(system, "Boot", "BootSourceOverrideMode"),
        "secure": _secure(bmc, system),
    }


def _order(bmc: Session, system: Resource) -> dict[str, Any]:
    """Return the boot order by the names that people see, where the BMC tells them, else by its references."""
    order = leaf(system, "Boot", "BootOrder")
    if "value" not in order or "BootOptions" not in system["Boot"]:
        return order
    options = bmc.members(bmc.follow(system["Boot"], "BootOptions", 1))
    names = {one.get("BootOptionReference"): one.get("DisplayName") for one in options}
    return value([names.get(reference) or reference for reference in order["value"]])


def _secure(bmc: Session, system: Resource) -> dict[str, Any]:
    if "SecureBoot" not in system:
        return leaf(system, "SecureBoot")
    current = leaf(bmc.follow(system, "SecureBoot"), "SecureBootCurrentBoot")
    return value(current["value"] == "Enabled") if "value" in current else current
