"""Reads what others say of machines: a DHCP server's hook, a tool's report (JSON).

dnsmasq: `add|old|del MAC ADDRESS [NAME]`, more in `DNSMASQ_…` variables (dnsmasq(8), --dhcp-script). Kea: the name of
the hook point as first argument, the lease in `LEASE4_…` or `LEASES4_AT0_…` variables (Kea ARM, run_script).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_address
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, IPvAnyAddress, ValidationError, model_validator

from assay.model.errors import AssayError
from assay.model.outside_documents import describe_mistakes
from assay.model.specs.machines import MOST_CHARACTERS, SeenMachine
from assay.model.specs.node_settings import MacAddress

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


MOST_MACHINES = 1000
"""Of one report."""
SaidText = Annotated[str, Field(max_length=MOST_CHARACTERS)]


class ReportedMachine(BaseModel):
    """A machine that somebody saw: at least its serial number or a MAC address.

    `bmc_mac`, `address`: of its BMC. `mac`: of the interface that it boots from. `rack`, `u`: where it stands, its
    lowest rack unit.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    serial: Annotated[str, Field(max_length=64)] = ""
    bmc_mac: MacAddress | None = None
    mac: MacAddress | None = None
    address: IPvAnyAddress | None = None
    vendor: SaidText = ""
    model: SaidText = ""
    rack: SaidText = ""
    u: int | None = Field(default=None, strict=True, ge=1, le=60)

    @model_validator(mode="after")
    def _has_identity(self) -> ReportedMachine:
        if not (self.serial.strip() or self.bmc_mac or self.mac):
            raise ValueError("give its serial, its bmc_mac or its mac")
        return self


class MachineReport(BaseModel):
    """The machines that a tool saw."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    machines: list[ReportedMachine] = Field(min_length=1, max_length=MOST_MACHINES)


def parse_machine_report(body: bytes) -> list[SeenMachine]:
    """Return the machines of a report. Raises AssayError, which names the fields and shows nothing of their values."""
    try:
        report = MachineReport.model_validate_json(body)
    except (ValidationError, RecursionError) as error:
        deep = "the body: it is nested too deeply"
        mistakes = describe_mistakes(error, "the body") if isinstance(error, ValidationError) else deep
        raise AssayError(f"no report of machines: {mistakes}"[:600]) from None
    return [SeenMachine.parse(machine.model_dump(mode="json")) for machine in report.machines]
