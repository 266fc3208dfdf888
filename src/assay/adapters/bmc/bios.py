"""Reads a node's processors, memory modules, BIOS attributes and boot settings, and the settings of the BMC itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from assay.adapters.bmc.accounts import find_factory_passwords, read_accounts
from assay.adapters.bmc.errors import BmcResourceMissing
from assay.adapters.bmc.resource import read_branch, read_by_id, read_property
from assay.adapters.bmc.session import RedfishSession, Resource
from assay.model.reading import ReadingTree, failed, value

POWER_RESTORE = "PowerRestorePolicy"


def read_processors(bmc: RedfishSession, systems: Iterable[Resource]) -> ReadingTree:
    """Return kind (`cpu`, `gpu`, …) → id → readings, of all systems: the host and the GPU baseboard."""
    tree: ReadingTree = {}
    for system in systems:
        if "Processors" in system:
            for processor in bmc.members(bmc.follow(system, "Processors", 1)):
                kind = str(processor.get("ProcessorType") or "other").lower()
                tree.setdefault(kind, {}).update(read_by_id([processor], _processor))
    return tree


def read_memory_modules(bmc: RedfishSession, system: Resource) -> ReadingTree:
    """Return slot → readings of its memory module: size in `gib`, and `health`."""
    return read_by_id(bmc.members(bmc.follow(system, "Memory", 1)), _memory_module)


def _processor(processor: Resource) -> ReadingTree:
    serial = read_property(processor, "SerialNumber")
    number = read_property(processor, "ProcessorId", "ProtectedIdentificationNumber")  # Intel and AMD: PPIN
    return {
        "model": read_property(processor, "Model"),
        "serial": number if "unsupported" in serial and "value" in number else serial,
        "health": read_property(processor, "Status", "Health"),
    }


def _memory_module(module: Resource) -> ReadingTree:
    size = read_property(module, "CapacityMiB")
    gib = value(size["value"] / 1024) if "value" in size else size
    return {"gib": gib, "health": read_property(module, "Status", "Health")}


def read_bios(bmc: RedfishSession, system: Resource) -> ReadingTree:
    """Return attribute → reading of its value. Attributes with "password" in their name are left out."""
    attributes = bmc.follow(system, "Bios").get("Attributes")
    if not isinstance(attributes, dict):
        raise BmcResourceMissing("the BIOS shows no attributes", where=bmc.where)
    return {
        name: failed("the BMC does not know this attribute (null)") if content is None else value(content)
        for name, content in attributes.items()
        if "password" not in name.lower()
    }


def read_pending_bios(bmc: RedfishSession, system: Resource) -> ReadingTree:
    """Return attribute → reading of the value that the next reset sets; {} where none is pending."""
    bios = bmc.follow(system, "Bios")
    settings = bios.get("@Redfish.Settings", {}).get("SettingsObject")
    if not settings:
        raise BmcResourceMissing("the BIOS names no settings object", where=bmc.where)
    wanted = bmc.get(settings["@odata.id"]).get("Attributes") or {}
    current = bios.get("Attributes") or {}
    return {
        name: value(content)
        for name, content in wanted.items()
        if content is not None and content != current.get(name) and "password" not in name.lower()
    }


def read_boot(bmc: RedfishSession, system: Resource) -> ReadingTree:
    """Return the boot `order` (names of devices), the override, the `mode` and whether `secure` boot is in force."""
    return {
        "order": _boot_order(bmc, system),
        "override": read_property(system, "Boot", "BootSourceOverrideEnabled"),
        "override_target": read_property(system, "Boot", "BootSourceOverrideTarget"),
        "mode": read_property(system, "Boot", "BootSourceOverrideMode"),
        "secure": _secure_boot(bmc, system),
    }


def _boot_order(bmc: RedfishSession, system: Resource) -> dict[str, Any]:
    """Return the boot order by display names where the BMC has them, else by its references."""
    order = read_property(system, "Boot", "BootOrder")
    if "value" not in order or "BootOptions" not in system["Boot"]:
        return order
    options = bmc.members(bmc.follow(system["Boot"], "BootOptions", 1))
    names = {option.get("BootOptionReference"): option.get("DisplayName") for option in options}
    return value([names.get(reference) or reference for reference in order["value"]])


def _secure_boot(bmc: RedfishSession, system: Resource) -> dict[str, Any]:
    if "SecureBoot" not in system:
        return read_property(system, "SecureBoot")
    current = read_property(bmc.follow(system, "SecureBoot"), "SecureBootCurrentBoot")
    return value(current["value"] == "Enabled") if "value" in current else current


def read_bmc_settings(
    bmc: RedfishSession, system: Callable[[], Resource], manager: Callable[[], Resource]
) -> ReadingTree:
    """Return the settings by their names in a node spec's `bmc`. Each branch fails alone.

    `factory_passwords` are the open accounts whose password is still the one that the BMC was shipped with.
    """

    def protocols() -> Resource:
        return bmc.follow(manager(), "NetworkProtocol")

    return {
        "power_restore": read_branch(lambda: read_property(system(), POWER_RESTORE)),
        "ntp": read_branch(lambda: _read_ntp(protocols())),
        "syslog": read_branch(lambda: value(sorted(map(name_log_server, list_syslog_subscriptions(bmc))))),
        "ipmi_lan": read_branch(lambda: read_property(protocols(), "IPMI", "ProtocolEnabled")),
        "accounts": read_branch(lambda: read_accounts(bmc)),
        "factory_passwords": read_branch(lambda: value(find_factory_passwords(bmc))),
    }


def list_syslog_subscriptions(bmc: RedfishSession) -> list[Resource]:
    """Return the subscriptions by which the BMC sends its log to syslog servers."""
    events = bmc.follow(bmc.root, "EventService", 2, 1)
    subscriptions = bmc.members(bmc.follow(events, "Subscriptions", 1))
    return [subscription for subscription in subscriptions if str(subscription.get("Protocol")).startswith("Syslog")]


def name_log_server(subscription: Resource) -> str:
    """Return where a subscription sends the log, as a node spec's `BmcSyslogSpec.text`."""
    destination, protocol = str(subscription.get("Destination")), str(subscription.get("Protocol"))
    address = destination.removeprefix("syslog://").rstrip("/")
    if not re.search(r":\d+$", address):
        address += ":6514" if protocol == "SyslogTLS" else ":514"
    return f"{address}/{protocol}"


def _read_ntp(protocols: Resource) -> ReadingTree:
    return {
        "enabled": read_property(protocols, "NTP", "ProtocolEnabled"),
        "servers": _drop_empty(read_property(protocols, "NTP", "NTPServers")),
    }


def _drop_empty(reading: dict[str, Any]) -> dict[str, Any]:
    """Return the reading of an array without its unused places: some BMCs show them as null or as an empty text."""
    if "value" not in reading:
        return reading
    if not isinstance(reading["value"], list):
        return failed("it is no list")
    return value([str(entry) for entry in reading["value"] if entry])
