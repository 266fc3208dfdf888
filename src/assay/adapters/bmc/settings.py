"""The settings of a BMC, and a node's BIOS and boot settings, against the node spec: what differs, and what changes it.

Only what differs is written. The BMC's own settings are in force at once. An order for BIOS or boot waits in a settings
object of the BMC until the next reset of the host.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any

from assay.adapters.bmc.accounts import change_accounts, compare_accounts, name_account, refuse_own_account
from assay.adapters.bmc.bios import (
    POWER_RESTORE,
    list_syslog_subscriptions,
    name_log_server,
    read_bios,
    read_bmc_settings,
    read_boot,
    read_pending_bios,
)
from assay.adapters.bmc.client import BmcClient
from assay.adapters.bmc.errors import BmcResourceMissing
from assay.adapters.bmc.readings import find_manager
from assay.adapters.bmc.resource import delete_resource, patch_resource, read_branch
from assay.adapters.bmc.session import Resource
from assay.model.errors import AssayError
from assay.model.reading import ReadingTree
from assay.model.specs.node.bmc_settings import BmcNtpSpec, BmcSpec, BmcSyslogSpec
from assay.model.specs.node.declared_settings import SettingMismatch, format_reading
from assay.model.specs.node.node_spec import BootSpec, NodeSpec

SETTINGS = "@Redfish.Settings"
IN_FORCE = "bios."
WAITING = "bios_pending."
"""How the names of attributes begin, as they are in force and as the next reset sets them."""
APPLY_TIME = {"@Redfish.SettingsApplyTime": {"ApplyTime": "OnReset"}}
NO_PASSWORDS: Mapping[str, str] = MappingProxyType({})


def read_own_settings(bmc: BmcClient) -> ReadingTree:
    """Read the settings of a BMC now. Raises nothing: what cannot be read is a leaf with the reason."""
    with bmc.cached_reads():
        return read_bmc_settings(bmc, bmc.system, lambda: find_manager(bmc, bmc.system()))


def compare_bmc_settings(wanted: BmcSpec, tree: Any) -> list[SettingMismatch]:
    """Return the declared settings that are not as wanted in a tree of readings, by their paths in the node spec."""
    mismatches: list[SettingMismatch] = []
    if wanted.power_restore and (seen := format_reading(tree, "power_restore")) != wanted.power_restore:
        mismatches.append(SettingMismatch("bmc.power_restore", wanted.power_restore, seen))
    mismatches += _compare_ntp(wanted.ntp, tree)
    if wanted.ipmi_lan is not None:
        text, seen = str(wanted.ipmi_lan).lower(), format_reading(tree, "ipmi_lan")
        lacks = seen.startswith("(unsupported") and not wanted.ipmi_lan  # a BMC without IPMI over LAN has it off
        mismatches += [] if lacks or seen == text else [SettingMismatch("bmc.ipmi_lan", text, seen)]
    if wanted.syslog is not None:
        servers = [server.text for server in wanted.syslog]
        mismatches += _compare_names("bmc.syslog", servers, format_reading(tree, "syslog"))
    accounts = tree.get("accounts", tree) if isinstance(tree, dict) else tree
    return [*mismatches, *compare_accounts(wanted.accounts, accounts)]


def _compare_ntp(wanted: BmcNtpSpec, tree: Any) -> Iterator[SettingMismatch]:
    if wanted.enabled is not None:
        text = str(wanted.enabled).lower()
        if (seen := format_reading(tree, "ntp", "enabled")) != text:
            yield SettingMismatch("bmc.ntp.enabled", text, seen)
    if wanted.servers is not None:
        yield from _compare_names("bmc.ntp.servers", wanted.servers, format_reading(tree, "ntp", "servers"))


def _compare_names(name: str, wanted: Sequence[str], seen: str) -> Iterator[SettingMismatch]:
    if seen.startswith("(") or sorted(seen.split()) != sorted(wanted):
        yield SettingMismatch(name, " ".join(wanted) or "none", seen or "none")


def change_bmc_settings(
    bmc: BmcClient, wanted: BmcSpec, mismatches: Sequence[SettingMismatch], passwords: Mapping[str, str] = NO_PASSWORDS
) -> None:
    """Write the wanted values of all mismatches. `passwords` are those to set, by user.

    Raises AssayError before the first request if the BMC lacks a property or does not show it, and after a request that
    the BMC refuses.
    """
    names = {mismatch.name for mismatch in mismatches}
    refuse_unreadable(bmc, mismatches)
    refuse_own_account(bmc, wanted.accounts, names)
    if "bmc.syslog" in names:  # first, since only a request shows whether a BMC takes such subscriptions
        _change_syslog(bmc, wanted.syslog or [])
    if any(name.startswith(name_account("")) for name in names):
        change_accounts(bmc, wanted.accounts, names, passwords)
    if "bmc.power_restore" in names:
        patch_resource(bmc, bmc.system()["@odata.id"], {POWER_RESTORE: wanted.power_restore})
    if "bmc.ipmi_lan" in names:
        protocols = bmc.follow(find_manager(bmc, bmc.system()), "NetworkProtocol")
        patch_resource(bmc, protocols["@odata.id"], {"IPMI": {"ProtocolEnabled": wanted.ipmi_lan}})
    if names & {"bmc.ntp.enabled", "bmc.ntp.servers"}:
        _change_ntp(bmc, wanted.ntp, names)


def refuse_unreadable(bmc: BmcClient, mismatches: Sequence[SettingMismatch]) -> None:
    """Raise AssayError, which names the properties, if settings that differ cannot be read."""
    unread = [f"{mismatch.name} {mismatch.seen}" for mismatch in mismatches if mismatch.is_unread]
    if unread:
        raise AssayError(
            f"nothing was changed, because the BMC does not show {', '.join(unread)}",
            where=bmc.where,
            fix="set it in the BMC's own way, and remove it from `bmc` of the node spec",
        )


def _change_syslog(bmc: BmcClient, wanted: Sequence[BmcSyslogSpec]) -> None:
    """Subscribe the missing servers, then remove the others. A subscription of Redfish events is no syslog server."""
    there = {
        subscription["@odata.id"]: name_log_server(subscription) for subscription in list_syslog_subscriptions(bmc)
    }
    subscriptions = bmc.follow(bmc.follow(bmc.root, "EventService"), "Subscriptions")["@odata.id"]
    for server in wanted:
        if server.text not in there.values():
            kind = {"SubscriptionType": "Syslog", "Protocol": server.protocol}
            bmc.post(subscriptions, {"Destination": server.uri, **kind, "Context": "assay"})
    known = {server.text for server in wanted}
    for path, name in there.items():
        if name not in known:
            delete_resource(bmc, path)


def _change_ntp(bmc: BmcClient, wanted: BmcNtpSpec, names: set[str]) -> None:
    protocols = bmc.follow(find_manager(bmc, bmc.system()), "NetworkProtocol")
    ntp: dict[str, Any] = {}
    if "bmc.ntp.servers" in names and wanted.servers is not None:
        now = protocols["NTP"].get("NTPServers") or []
        ntp["NTPServers"] = [*wanted.servers, *[None] * (len(now) - len(wanted.servers))]
    if "bmc.ntp.enabled" in names:
        ntp["ProtocolEnabled"] = wanted.enabled
    patch_resource(bmc, protocols["@odata.id"], {"NTP": ntp})


def declares_system_settings(spec: NodeSpec) -> bool:
    """Say whether a spec declares anything that `order_system_settings` brings."""
    return bool(spec.bios or spec.boot.model_fields_set)


def find_system_mismatches(bmc: BmcClient, spec: NodeSpec) -> list[SettingMismatch]:
    """Return what differs from the spec's `bios` and `boot`, as in force now. Settings that are not declared are left.

    An attribute that the BMC lacks is seen as `absent`. An attribute `bios_pending.NAME` is in force as wanted, but the
    next reset would change it: somebody else ordered that.
    """
    if not declares_system_settings(spec):
        return []
    system = bmc.system()
    bios = read_branch(lambda: read_bios(bmc, system)) if spec.bios else {}
    boot = read_branch(lambda: read_boot(bmc, system)) if spec.boot.model_fields_set else {}
    different = compare_bios(spec.bios, bios)
    waiting = _read_orders(bmc, system, spec)
    names = {mismatch.name for mismatch in different}
    wrong = [
        SettingMismatch(f"{WAITING}{name}", spec.bios[name], text)
        for name, text in waiting.items()
        if f"{IN_FORCE}{name}" not in names and not is_same_setting(spec.bios[name], text)
    ]
    return [*different, *wrong, *compare_boot(spec.boot, boot)]


def needs_reset(mismatches: Iterable[SettingMismatch]) -> bool:
    """Say whether a reset is needed to remove the mismatches."""
    return any(not mismatch.name.startswith(WAITING) for mismatch in mismatches)


def compare_bios(wanted: Mapping[str, str], tree: Any) -> list[SettingMismatch]:
    """Return the attributes of a tree of BIOS readings that are not as wanted."""
    seen = {name: format_reading(tree, name) for name in wanted}
    return [
        SettingMismatch(f"bios.{name}", text, seen[name])
        for name, text in wanted.items()
        if not is_same_setting(text, seen[name])
    ]


def compare_boot(wanted: BootSpec, tree: Any) -> list[SettingMismatch]:
    """Return the declared boot settings that are not as wanted in a tree of boot readings."""
    return list(_compare_boot(wanted, tree))


def _compare_boot(wanted: BootSpec, tree: Any) -> Iterator[SettingMismatch]:
    if "mode" in wanted.model_fields_set and (mode := format_reading(tree, "mode")) != wanted.mode:
        yield SettingMismatch("boot.mode", wanted.mode, mode)
    if wanted.secure is not None:
        text = str(wanted.secure).lower()
        if (secure := format_reading(tree, "secure")) != text:
            yield SettingMismatch("boot.secure", text, secure)
    if wanted.first is not None:
        order = tree.get("order", {}).get("value") if isinstance(tree.get("order"), dict) else None
        first = str(order[0]) if order else format_reading(tree, "order") or "(failed: the boot order is empty)"
        if not fnmatchcase(first, wanted.first):
            yield SettingMismatch("boot.first", wanted.first, first)


def is_same_setting(wanted: str, seen: str) -> bool:
    """Say whether two texts of an attribute are equal. Booleans may be written with any case."""
    return wanted == seen or (seen in ("true", "false") and wanted.lower() == seen)


def _read_orders(bmc: BmcClient, system: Resource, spec: NodeSpec) -> dict[str, str]:
    """Return the declared attributes that the next reset changes, with their values then. {} if the BMC hides them."""
    pending = read_branch(lambda: read_pending_bios(bmc, system)) if spec.bios else {}
    return {name: format_reading(pending, name) for name in spec.bios if name in pending}


def order_system_settings(bmc: BmcClient, spec: NodeSpec, mismatches: Sequence[SettingMismatch]) -> None:
    """Order the wanted values of all mismatches; the next reset applies them. What is ordered already is left.

    Raises AssayError before the first order if the BMC lacks a setting, and after an order that the BMC did not take.
    """
    _refuse_missing_attributes(bmc, spec, mismatches)
    system, names = bmc.system(), {mismatch.name for mismatch in mismatches}
    order = _find_boot_order(bmc, system, spec) if "boot.first" in names else None
    waiting = _read_orders(bmc, system, spec)
    attributes = {
        name: text
        for name, text in spec.bios.items()
        if {f"{IN_FORCE}{name}", f"{WAITING}{name}"} & names and not is_same_setting(text, waiting.get(name, ""))
    }
    if attributes:
        _order_bios(bmc, system, attributes)
    boot: dict[str, Any] = {"BootOrder": order} if order else {}
    if "boot.mode" in names:
        boot["BootSourceOverrideMode"] = spec.boot.mode
    if boot:
        patch_resource(bmc, _settings_path(system) or system["@odata.id"], {"Boot": boot})
    if "boot.secure" in names:
        secure = bmc.follow(system, "SecureBoot")
        patch_resource(bmc, _settings_path(secure) or secure["@odata.id"], {"SecureBootEnable": spec.boot.secure})


def _refuse_missing_attributes(bmc: BmcClient, spec: NodeSpec, mismatches: Iterable[SettingMismatch]) -> None:
    missing = [mismatch.name.removeprefix(IN_FORCE) for mismatch in mismatches if mismatch.seen == "absent"]
    if missing:
        problem = f"the BIOS has no {'attribute' if len(missing) == 1 else 'attributes'} {', '.join(missing)}"
        raise AssayError(problem, where=bmc.where, fix=f"correct `bios` of the node spec {spec.name}")


def _find_boot_order(bmc: BmcClient, system: Resource, spec: NodeSpec) -> list[str]:
    """Return the boot order with the first option that matches the spec moved to its front. Raises AssayError."""
    boot, pattern = system.get("Boot", {}), str(spec.boot.first)
    options = bmc.members(bmc.follow(boot, "BootOptions", 1)) if "BootOptions" in boot else []
    names = {str(option.get("BootOptionReference")): str(option.get("DisplayName")) for option in options}
    order = [str(reference) for reference in boot.get("BootOrder") or []]
    matching = [reference for reference in order if fnmatchcase(names.get(reference, reference), pattern)]
    if not matching:
        known = ", ".join(names.get(reference, reference) for reference in order) or "none"
        problem = f"no boot option matches {pattern!r}; the BMC has {known}"
        raise AssayError(problem, where=bmc.where, fix=f"correct `boot.first` of the node spec {spec.name}")
    return [matching[0], *(reference for reference in order if reference != matching[0])]


def _order_bios(bmc: BmcClient, system: Resource, wanted: Mapping[str, str]) -> None:
    bios = bmc.follow(system, "Bios")
    path = _settings_path(bios)
    if not path:
        raise BmcResourceMissing("the BIOS names no settings object, so it takes no orders", where=bmc.where)
    current = bios.get("Attributes") or {}
    attributes = {name: _convert(name, text, current.get(name), bmc.where) for name, text in wanted.items()}
    when = APPLY_TIME if "OnReset" in (bios[SETTINGS].get("SupportedApplyTimes") or []) else {}
    patch_resource(bmc, path, {"Attributes": attributes} | when)
    taken = bmc.get(path).get("Attributes")
    taken = taken if isinstance(taken, dict) else {}  # some BMCs show no orders; the reading after the reset decides
    refused = [name for name, value in attributes.items() if name in taken and taken[name] != value]
    if refused:
        raise AssayError(f"the BMC took the order, but not for {', '.join(refused)}", where=bmc.where)


def _convert(name: str, text: str, like: Any, where: str) -> str | int | bool:
    """Return a spec's text as the type that the attribute has now. Raises AssayError."""
    if isinstance(like, bool) and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if not isinstance(like, (int, float)):
        return text
    try:
        if isinstance(like, bool):
            raise ValueError
        return int(text)
    except ValueError:
        kind = "true or false" if isinstance(like, bool) else "a number"
        raise AssayError(f"the attribute {name} is {kind}, and the spec says {text!r}", where=where) from None


def _settings_path(resource: Resource) -> str:
    """Return the path of the object that takes orders for a resource, "" if the resource takes them itself."""
    settings = resource.get(SETTINGS) or {}
    return str((settings.get("SettingsObject") or {}).get("@odata.id") or "")
