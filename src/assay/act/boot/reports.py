"""Reads what others say of machines: a vendor's list of a delivery (CSV), a DHCP server's hook, a tool's report (JSON).

dnsmasq: `add|old|del MAC ADDRESS [NAME]`, more in `DNSMASQ_…` variables (dnsmasq(8), --dhcp-script). Kea: the name of
the hook point as first argument, the lease in `LEASE4_…` or `LEASES4_AT0_…` variables (Kea ARM, run_script).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_address
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, IPvAnyAddress, ValidationError, model_validator

from assay.model.errors import AssayError
from assay.model.outside_documents import MOST_MISTAKES, describe_mistakes
from assay.model.specs.machines import MOST_CHARACTERS, SeenMachine
from assay.model.specs.node_settings import MacAddress

COLUMNS: dict[str, tuple[str, ...]] = {
    "serial_number": (
        "serialnumber",
        "serial",
        "systemserial",
        "systemserialnumber",
        "servicetag",
        "sn",
        "chassisserial",
    ),
    "bmc_mac": ("bmcmac", "bmcmacaddress", "ipmimac", "ipmimacaddress", "idracmac", "ilomac", "xccmac", "oobmac"),
    "mac": ("mac", "macaddress", "bootmac", "pxemac", "nic1mac", "lom1mac", "bootmacaddress"),
    "rack": ("rack", "rackname", "cabinet"),
    "u": ("u", "rackunit", "unit", "position", "ru", "upos", "slot"),
    "name": ("name", "hostname", "node", "host"),
}
"""Field of a machine → the headings that vendors and data centres give its column, without blanks and signs."""
NEEDED = ("serial_number", "bmc_mac", "rack", "u")
_MAC_DIGITS = re.compile(r"[0-9a-f]{12}")


def read_delivery_list(text: str, where: str) -> list[dict[str, Any]]:
    """Return the machines of a list, one for each row.

    Raises AssayError for a list without a needed column, and with the line of each row that cannot be read.
    """
    try:
        dialect: Any = csv.Sniffer().sniff(text[:4096], delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel
    rows = csv.reader(io.StringIO(text.removeprefix("\ufeff")), dialect)
    headings = next(rows, [])
    places = find_columns(headings)
    if missing := [field for field in NEEDED if field not in places]:
        fix = f"call it one of: {', '.join(COLUMNS[missing[0]])}"
        raise AssayError(
            f"no column for {missing[0]} among {', '.join(headings) or 'nothing'}", where=f"{where}:1", fix=fix
        )
    machines, mistakes = [], list[AssayError]()
    for row in rows:
        if any(cell.strip() for cell in row):
            try:
                machines.append(_read_row(row, places, f"{where}:{rows.line_num}"))
            except AssayError as mistake:
                mistakes.append(mistake)
    if mistakes:
        more = f"; {len(mistakes) - MOST_MISTAKES} more" if len(mistakes) > MOST_MISTAKES else ""
        others = [f"{mistake.where}: {mistake.what}" for mistake in mistakes[1:MOST_MISTAKES]]
        raise AssayError("; ".join([mistakes[0].what, *others]) + more, where=mistakes[0].where, fix=mistakes[0].fix)
    if not machines:
        raise AssayError("the list has no machine", where=where, fix="give a row for each machine")
    return machines


def find_columns(headings: Sequence[str]) -> dict[str, int]:
    """Return field → column. The first heading that fits counts."""
    plain = [re.sub(r"[^a-z0-9]", "", heading.lower()) for heading in headings]
    columns = {
        field: next((plain.index(name) for name in names if name in plain), -1) for field, names in COLUMNS.items()
    }
    return {field: column for field, column in columns.items() if column >= 0}


def _read_row(row: Sequence[str], places: Mapping[str, int], where: str) -> dict[str, Any]:
    cells = {field: row[column].strip() if column < len(row) else "" for field, column in places.items()}
    for field in NEEDED:
        if not cells[field]:
            raise AssayError(f"the row has no {field}", where=where, fix="fill it in, or remove the row")
    unit = re.fullmatch(r"[Uu]?(\d{1,2})", cells["u"])
    if not unit:
        raise AssayError(f"{cells['u']} is no rack unit", where=where, fix="write its lowest unit, such as 14")
    machine: dict[str, Any] = {"serial_number": cells["serial_number"], "name": cells.get("name", "").lower()}
    for field in ("bmc_mac", "mac"):
        if cells.get(field):
            machine[field] = _normalize_mac(cells[field], field, where)
    return {**machine, "rack": cells["rack"], "u": int(unit[1])}


def _normalize_mac(text: str, field: str, where: str) -> str:
    digits = re.sub(r"[^0-9a-f]", "", text.lower())
    if not _MAC_DIGITS.fullmatch(digits):
        raise AssayError(f"{field} {text} is no MAC address", where=where, fix="it has twelve hexadecimal digits")
    return ":".join(digits[place : place + 2] for place in range(0, 12, 2))


def draft_delivery(name: str, machines: Sequence[Mapping[str, Any]]) -> str:
    """Return the spec of a delivery. `# review:` stands where a person must fill in what no list says."""
    head = [
        "# yaml-language-server: $schema=../schemas/expected-machines.json",
        "kind: ExpectedMachines",
        f"name: {name}",
        'owner: ""  # review: the team that answers for it',
        'order: ""  # review: the purchase order',
        'vendor: ""  # review: as the BMC gives it, Redfish Manufacturer',
        'model: ""  # review: as the BMC gives it, Redfish Model',
        "pool: todo  # review: the pool of the new nodes",
        'site: ""  # review',
        "node_spec: todo  # review",
        "profile: todo  # review",
        "# review: factory_credentials: {env: NAME} says where the login is with which the BMCs are shipped",
    ]
    named = [{**machine, "name": machine["name"] or f"todo-{number}"} for number, machine in enumerate(machines, 1)]
    return "\n".join(head) + "\n" + yaml.safe_dump({"machines": named}, sort_keys=False, allow_unicode=True)


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
