"""Reads what a DHCP server says of a lease when it calls a program: dnsmasq's `dhcp-script`, Kea's `run_script` hook.

dnsmasq: `add|old|del MAC ADDRESS [NAME]`, more in `DNSMASQ_…` variables (dnsmasq(8), --dhcp-script). Kea: the name of
the hook point as first argument, the lease in `LEASE4_…` or `LEASES4_AT0_…` variables (Kea ARM, run_script).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_address

from assay.model.specs.seen_machine import SeenMachine

DNSMASQ_LEASES = ("add", "old")
KEA_COMMITTED = "leases4_committed"
_MAC = re.compile(r"(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}")
_DNSMASQ_HARDWARE_TYPE = re.compile(r"^[0-9A-Fa-f]{2}-(?=(?:[0-9A-Fa-f]{2}:){5})")


def read_leases(words: Sequence[str], environment: Mapping[str, str]) -> list[SeenMachine]:
    """Return the machines of the leases that a call tells of; none for a lease that ended, or another hook point.

    Raises ValueError for words that neither server says.
    """
    if not words:
        raise ValueError("a DHCP server calls this with words: dnsmasq with `add MAC ADDRESS`, Kea with a hook point")
    if words[0] in (*DNSMASQ_LEASES, "del", "init", "tftp", "arp-add", "arp-del", "relay-snoop"):
        return [_read_dnsmasq(words, environment)] if words[0] in DNSMASQ_LEASES else []
    if re.fullmatch(r"leases?[46]_\w+", words[0]):
        return list(_read_kea(words[0], environment))
    raise ValueError(f"{words[0]} is neither a word of dnsmasq nor a hook point of Kea")


def _read_dnsmasq(words: Sequence[str], environment: Mapping[str, str]) -> SeenMachine:
    if len(words) < 3:
        raise ValueError(f"dnsmasq says {words[0]} with a MAC address and an address")
    mac = _DNSMASQ_HARDWARE_TYPE.sub("", words[1])
    return _make_machine(mac, words[2], environment.get("DNSMASQ_VENDOR_CLASS", ""))


def _read_kea(hook: str, environment: Mapping[str, str]) -> Iterator[SeenMachine]:
    if hook != KEA_COMMITTED:
        if hook == "lease4_renew":
            yield _make_machine(environment.get("LEASE4_HWADDR", ""), environment.get("LEASE4_ADDRESS", ""), "")
        return
    for number in range(int(environment.get("LEASES4_SIZE", "0") or 0)):
        lease = f"LEASES4_AT{number}"
        yield _make_machine(environment.get(f"{lease}_HWADDR", ""), environment.get(f"{lease}_ADDRESS", ""), "")


def _make_machine(mac: str, address: str, vendor_class: str) -> SeenMachine:
    if not _MAC.fullmatch(mac):
        raise ValueError(f"{mac[:40]!r} is no MAC address")
    return SeenMachine.parse({"bmc_mac": mac, "address": str(ip_address(address)), "vendor": vendor_class})
