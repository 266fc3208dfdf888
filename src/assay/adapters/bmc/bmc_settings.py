"""The settings of a BMC against the node spec: what differs, and the requests that change it.

They are in force at once, without a reset. Only properties that differ are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from assay.adapters.bmc.bmc_accounts import change_accounts, compare_accounts, name_account, refuse_own_account
from assay.adapters.bmc.bmc_client import BmcClient
from assay.adapters.bmc.bmc_settings_readings import (
    POWER_RESTORE,
    list_syslog_subscriptions,
    name_log_server,
    read_bmc_settings,
)
from assay.adapters.bmc.errors import BmcResourceMissing
from assay.adapters.bmc.resource_changes import delete_resource, patch_resource
from assay.adapters.bmc.session import Resource
from assay.model.errors import AssayError
from assay.model.reading import ReadingTree
from assay.model.specs.node.bmc_settings import BmcNtpSpec, BmcSpec, BmcSyslogSpec
from assay.model.specs.node.setting_mismatch import SettingMismatch, format_reading

NO_PASSWORDS: Mapping[str, str] = MappingProxyType({})


def read_own_settings(bmc: BmcClient) -> ReadingTree:
    """Read the settings of a BMC now. Raises nothing: what cannot be read is a leaf with the reason."""
    with bmc.cached_reads():
        return read_bmc_settings(bmc, bmc.system, lambda: find_manager(bmc))


def find_manager(bmc: BmcClient) -> Resource:
    """Return the manager of the node's system. Raises BmcResourceMissing."""
    managers = bmc.system().get("Links", {}).get("ManagedBy", [])
    if not managers:
        raise BmcResourceMissing("the system links to no Manager", where=bmc.where)
    return bmc.get(managers[0]["@odata.id"])


def compare_bmc_settings(wanted: BmcSpec, tree: Any) -> list[SettingMismatch]:
    """Return the declared settings that are not as wanted in a tree of readings, by their paths in the node spec."""
    accounts = tree.get("accounts", tree) if isinstance(tree, dict) else tree
    return [
        *_compare_power(wanted, tree),
        *_compare_ntp(wanted.ntp, tree),
        *_compare_syslog(wanted, tree),
        *compare_accounts(wanted.accounts, accounts),
    ]


def _compare_power(wanted: BmcSpec, tree: Any) -> Iterator[SettingMismatch]:
    if wanted.power_restore and (seen := format_reading(tree, "power_restore")) != wanted.power_restore:
        yield SettingMismatch("bmc.power_restore", wanted.power_restore, seen)


def _compare_ntp(wanted: BmcNtpSpec, tree: Any) -> Iterator[SettingMismatch]:
    if wanted.enabled is not None:
        text = str(wanted.enabled).lower()
        if (seen := format_reading(tree, "ntp", "enabled")) != text:
            yield SettingMismatch("bmc.ntp.enabled", text, seen)
    if wanted.servers is not None:
        yield from _compare_names("bmc.ntp.servers", wanted.servers, format_reading(tree, "ntp", "servers"))


def _compare_syslog(wanted: BmcSpec, tree: Any) -> Iterator[SettingMismatch]:
    if wanted.syslog is not None:
        servers = [server.text for server in wanted.syslog]
        yield from _compare_names("bmc.syslog", servers, format_reading(tree, "syslog"))


def _compare_names(name: str, wanted: Sequence[str], seen: str) -> Iterator[SettingMismatch]:
    if seen.startswith("(") or sorted(seen.split()) != sorted(wanted):
        yield SettingMismatch(name, " ".join(wanted) or "none", seen or "none")


def change_bmc_settings(
    bmc: BmcClient,
    wanted: BmcSpec,
    mismatches: Sequence[SettingMismatch],
    passwords: Mapping[str, str] = NO_PASSWORDS,
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
    if names & {"bmc.ntp.enabled", "bmc.ntp.servers"}:
        _change_ntp(bmc, wanted.ntp, names)


def refuse_unreadable(bmc: BmcClient, mismatches: Sequence[SettingMismatch]) -> None:
    """Raise AssayError, which names the properties, if settings that differ cannot be read."""
    unread = [f"{one.name} {one.seen}" for one in mismatches if one.is_unread]
    if unread:
        raise AssayError(
            f"nothing was changed, because the BMC does not show {', '.join(unread)}",
            where=bmc.where,
            fix="set it in the BMC's own way, and remove it from `bmc` of the node spec",
        )


def _change_syslog(bmc: BmcClient, wanted: Sequence[BmcSyslogSpec]) -> None:
    """Subscribe the missing servers, then remove the others. A subscription of Redfish events is no syslog server."""
    there = {one["@odata.id"]: name_log_server(one) for one in list_syslog_subscriptions(bmc)}
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
    protocols = bmc.follow(find_manager(bmc), "NetworkProtocol")
    ntp: dict[str, Any] = {}
    if "bmc.ntp.servers" in names and wanted.servers is not None:
        now = protocols["NTP"].get("NTPServers") or []
        ntp["NTPServers"] = [*wanted.servers, *[None] * (len(now) - len(wanted.servers))]
    if "bmc.ntp.enabled" in names:
        ntp["ProtocolEnabled"] = wanted.enabled
    patch_resource(bmc, protocols["@odata.id"], {"NTP": ntp})
