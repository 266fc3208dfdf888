"""Reads a vendor's list of a delivery (CSV, XLSX or JSON) and drafts its spec.

No column and no row is dropped in silence: each is used, or named with the reason.
"""

from __future__ import annotations

import csv
import difflib
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
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
    "mac": ("pxemac", "bootmac", "bootmacaddress", "mac", "macaddress", "nic1mac", "lom1mac"),
    "rack": ("rack", "rackname", "cabinet"),
    "u": ("u", "rackunit", "unit", "position", "ru", "upos", "slot"),
    "name": ("name", "hostname", "node", "host"),
}
"""Field of a machine → the headings that vendors and data centres give its column, without blanks and signs.

Of several columns for one field, the one whose heading stands first here is used.
"""
NEEDED = ("serial_number", "bmc_mac", "rack", "u")
BMC_WORDS = frozenset({"bmc", "ipmi", "idrac", "ilo", "xcc", "irmc", "cimc", "oob", "mgmt", "management"})
OTHER_DEVICES = frozenset({"switch", "leaf", "pdu", "port"})
_MAC_DIGITS = re.compile(r"[0-9a-f]{12}")
_UNITS = re.compile(r"(?:ru|u)?\s*(\d{1,2})(?:\s*[-–]\s*(?:ru|u)?\s*(\d{1,2}))?", re.IGNORECASE)
"""A rack unit, or the lowest and the highest of a range."""


@dataclass(frozen=True, slots=True)
class DeliveryList:
    """What a list says: its machines, and a text for each column and each row that is not used."""

    machines: list[dict[str, Any]]
    unused_columns: list[str]
    refused_rows: list[str]


@dataclass(frozen=True, slots=True)
class _Row:
    where: str
    cells: Sequence[str]


def read_delivery_file(path: Path) -> DeliveryList:
    """Return what a file lists; its suffix says its form, anything but .json and .xlsx is CSV in UTF-8.

    Raises AssayError for a file that cannot be read, lacks a needed column, or has no good row.
    """
    try:
        headings, rows = _read_rows(path)
    except OSError as error:
        raise AssayError(f"the list cannot be read: {error.strerror}", where=str(path)) from None
    except (ValueError, KeyError, EOFError) as error:
        fix = "name a CSV file in UTF-8, an .xlsx workbook or a .json list of machines"
        raise AssayError(f"the list cannot be read: {error}", where=str(path), fix=fix) from None
    return _list_machines(headings, rows, str(path))


def _read_rows(path: Path) -> tuple[list[str], list[_Row]]:
    if path.suffix == ".json":
        machines = json.loads(path.read_text(encoding="utf-8-sig"))
        if isinstance(machines, dict):  # vendors wrap their list in an object of one list
            machines = next((value for value in machines.values() if isinstance(value, list)), [])
        if not isinstance(machines, list) or not all(isinstance(machine, dict) for machine in machines):
            raise ValueError("it is no list of machines")
        headings = list(dict.fromkeys(key for machine in machines for key in machine))
        cells = [[_format_cell(machine.get(heading)) for heading in headings] for machine in machines]
        return headings, [_Row(f"{path}, machine {number}", row) for number, row in enumerate(cells, 1)]
    if path.suffix == ".xlsx":
        from zipfile import BadZipFile

        import openpyxl

        try:
            sheet = openpyxl.load_workbook(path, read_only=True, data_only=True).worksheets[0]
        except BadZipFile as error:
            raise ValueError(str(error)) from None
        lines = [[_format_cell(cell) for cell in row] for row in sheet.iter_rows(values_only=True)]
        return (lines or [[]])[0], [_Row(f"{path}:{number}", row) for number, row in enumerate(lines[1:], 2)]
    return _read_csv_rows(path.read_text(encoding="utf-8-sig"), str(path))


def _read_csv_rows(text: str, where: str) -> tuple[list[str], list[_Row]]:
    """Return the headings and the rows of a CSV text, whatever separates its columns."""
    try:
        dialect: Any = csv.Sniffer().sniff(text[:4096], delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel
    rows = csv.reader(io.StringIO(text.removeprefix("\ufeff")), dialect)
    return next(rows, []), [_Row(f"{where}:{rows.line_num}", row) for row in rows]


def _format_cell(cell: object) -> str:
    return "" if cell is None else str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _list_machines(headings: Sequence[str], rows: Sequence[_Row], where: str) -> DeliveryList:
    """Return what rows under these headings list. Raises AssayError as `read_delivery_file`."""
    places = _find_columns(headings)
    if missing := [field for field in NEEDED if field not in places]:
        fix = f"call it one of: {', '.join(COLUMNS[missing[0]])}"
        among = ", ".join(headings) or "nothing"
        raise AssayError(f"no column for {missing[0]} among {among}", where=f"{where}:1", fix=fix)
    machines, refused, seen = list[dict[str, Any]](), list[str](), dict[str, str]()
    for row in rows:
        if not any(cell.strip() for cell in row.cells):
            continue
        try:
            machine = _read_row(row, places)
            _refuse_seen(machine, row.where, seen)
        except AssayError as mistake:
            refused.append(str(mistake))
        else:
            machines.append(machine)
    if not machines:
        reasons = "\n".join(refused)
        raise AssayError(reasons or "the list has no machine", where="" if refused else where, fix="give it a good row")
    return DeliveryList(machines, list(_describe_unused(headings, places)), refused)


def _find_columns(headings: Sequence[str]) -> dict[str, int]:
    """Return field → column. A heading with the word MAC that no list has is one by its other words."""
    plain = [_plain(heading) for heading in headings]
    columns: dict[str, int] = {}
    for field, names in COLUMNS.items():
        if known := [plain.index(name) for name in names if name in plain]:
            columns[field] = known[0]
    for place, heading in enumerate(headings):
        words = set(re.findall(r"[a-z]+", heading.lower()))
        if "mac" in words and not words & OTHER_DEVICES:
            columns.setdefault("bmc_mac" if words & BMC_WORDS else "mac", place)
    return columns


def _plain(heading: str) -> str:
    return re.sub(r"[^a-z0-9]", "", heading.lower())


def _describe_unused(headings: Sequence[str], places: Mapping[str, int]) -> Iterator[str]:
    names = {name: field for field, known in COLUMNS.items() for name in known}
    for place, heading in enumerate(headings):
        if place in places.values() or not heading.strip():
            continue
        near = difflib.get_close_matches(_plain(heading), names, n=1, cutoff=0.75)
        field = names[near[0]] if near else ""
        used = f": {field} is read from the column {headings[places[field]]}" if field in places else ""
        yield f"the column {heading} is not used{used or (f'; if it is {field}, call it {near[0]}' if near else '')}"


def _read_row(row: _Row, places: Mapping[str, int]) -> dict[str, Any]:
    cells = {field: row.cells[at].strip() if at < len(row.cells) else "" for field, at in places.items()}
    for field in NEEDED:
        if not cells[field]:
            raise AssayError(f"the row has no {field}", where=row.where, fix="fill it in, or remove the row")
    units = _UNITS.fullmatch(cells["u"])
    if not units:
        raise AssayError(f"{cells['u']} is no rack unit", where=row.where, fix="write its lowest unit, such as 14")
    machine: dict[str, Any] = {"serial_number": cells["serial_number"], "name": cells.get("name", "").lower()}
    for field in ("bmc_mac", "mac"):
        if cells.get(field):
            machine[field] = _normalize_mac(cells[field], field, row.where)
    return {**machine, "rack": cells["rack"], "u": min(int(unit) for unit in units.groups() if unit)}


def _refuse_seen(machine: Mapping[str, Any], where: str, seen: dict[str, str]) -> None:
    """Raise AssayError for a serial number or an address that a row before has; else note those of this row."""
    own = [str(machine[field]) for field in ("serial_number", "bmc_mac", "mac") if field in machine]
    for text in own:
        if text in seen:
            raise AssayError(f"{text} stands in {seen[text]} too", where=where, fix="remove the row that is wrong")
    seen.update(dict.fromkeys(own, where))


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
