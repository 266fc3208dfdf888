"""Reads the settings of a BMC itself: the return of power, time, syslog servers, accounts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from assay.adapters.bmc.bmc_accounts import read_accounts
from assay.adapters.bmc.property_readings import read_branch, read_property
from assay.adapters.bmc.session import RedfishSession, Resource
from assay.model.reading import ReadingTree, failed, value

POWER_RESTORE = "PowerRestorePolicy"


def read_bmc_settings(
    bmc: RedfishSession, system: Callable[[], Resource], manager: Callable[[], Resource]
) -> ReadingTree:
    """Return the settings by their names in a node spec's `bmc`. Each branch fails alone."""
    return {
        "power_restore": read_branch(lambda: read_property(system(), POWER_RESTORE)),
        "ntp": read_branch(lambda: _read_ntp(bmc.follow(manager(), "NetworkProtocol"))),
        "syslog": read_branch(lambda: value(sorted(map(name_log_server, list_syslog_subscriptions(bmc))))),
        "accounts": read_branch(lambda: read_accounts(bmc)),
    }


def list_syslog_subscriptions(bmc: RedfishSession) -> list[Resource]:
    """Return the subscriptions by which the BMC sends its log to syslog servers."""
    events = bmc.follow(bmc.root, "EventService", 2, 1)
    found = bmc.members(bmc.follow(events, "Subscriptions", 1))
    return [one for one in found if str(one.get("Protocol")).startswith("Syslog")]


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
