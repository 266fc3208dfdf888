"""Reads a vendor's list of shipped machines (CSV), and drafts the spec of the delivery."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from assay.model.errors import AssayError

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

    Raises AssayError with the line for a list without a needed column, and for a row that cannot be read.
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
    machines = []
    for row in rows:
        if any(cell.strip() for cell in row):
            machines.append(_read_row(row, places, f"{where}:{rows.line_num}"))
    if not machines:
        raise AssayError("the list has no machine", where=where, fix="give a row for each machine")
    return machines


def find_columns(headings: Sequence[str]) -> dict[str, int]:
    """Return field → column. The first heading that fits counts."""
    plain = [re.sub(r"[^a-z0-9]", "", heading.lower()) for heading in headings]
    found = {
        field: next((plain.index(name) for name in names if name in plain), -1) for field, names in COLUMNS.items()
    }
    return {field: column for field, column in found.items() if column >= 0}


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
