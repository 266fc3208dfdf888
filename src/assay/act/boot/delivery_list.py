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
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import yaml
from pydantic import ValidationError

from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.specs.machines import ExpectedMachine

COLUMNS = {
    "serial_number": "serialnumber serial systemserial systemserialnumber servicetag sn serialno systemsn chassissn "
    "chassisserial chassisserialnumber",
    "bmc_mac": "bmcmac bmcmacaddress ipmimac ipmimacaddress idracmac ilomac xccmac oobmac",
    "mac": "pxemac bootmac bootmacaddress mac macaddress nic1mac lom1mac",
    "rack": "rack rackname rackid cabinet",
    "u": "u rackunit rackunits unit units position rackposition ru upos uposition slot ustart startu ufrom bottomu",
    "top_u": "topu uend endu uto highestu",
    "height_u": "heightu uheight height usize sizeu",
    "name": "name hostname node host",
    "pdu": "pdu pdus pduname pdupair powerfeed",
    "endorsement_key_sha256": "endorsementkeysha256 eksha256 tpmeksha256",
}
"""Field of a machine → the headings that vendors and data centres give its column, without blanks and signs.

Of several columns for one field, the one whose heading stands first here is used. Each with the word GUID is used.
"""
FIELDS = {name: field for field, names in COLUMNS.items() for name in names.split()}
NEEDED = ("serial_number", "bmc_mac", "rack", "u")
BMC_WORDS = frozenset({"bmc", "ipmi", "idrac", "drac", "ilo", "xcc", "irmc", "cimc", "oob", "mgmt", "management"})
OTHER_DEVICES = frozenset({"switch", "leaf", "pdu", "port"})
CAMEL_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_MAC_DIGITS = re.compile(r"[0-9a-f]{12}")
_UNITS = re.compile(r"(?:ru|u)?\s*(\d{1,2})\s*u?(?:\s*(?:[-–:]|to)\s*(?:ru|u)?\s*(\d{1,2})\s*u?)?", re.IGNORECASE)
"""A rack unit, or both ends of a range."""


@frozen
class DeliveryList:
    """What a list says: its machines, and a text for each column and each row that is not used."""

    machines: list[dict[str, Any]]
    unused_columns: list[str]
    refused_rows: list[str]


@frozen
class _Row:
    where: str
    cells: Sequence[str]


def read_delivery_file(path: Path) -> DeliveryList:
    """Return what a file lists; its suffix says its form, anything but .json and .xlsx is CSV in UTF-8.

    Raises AssayError for a file that cannot be read, lacks a needed column, or has no good row.
    """
    read = {".json": _read_json, ".xlsx": _read_workbook}.get(path.suffix.lower(), _read_csv)
    try:
        rows, unused = read(path)
    except OSError as error:
        raise AssayError(f"the list cannot be read: {error.strerror}", where=str(path)) from None
    except (ValueError, KeyError, EOFError, csv.Error, BadZipFile) as error:
        fix = "name a CSV file in UTF-8, an .xlsx workbook or a .json list of machines"
        raise AssayError(f"the list cannot be read: {error}", where=str(path), fix=fix) from None
    start = next((at for at, row in enumerate(rows) if _find_columns(row.cells).keys() >= {*NEEDED}), 0)
    unused += [f"{row.where} stands above the headings, and is not used" for row in rows[:start] if any(row.cells)]
    return _list_machines(rows[start].cells if rows else [], rows[start + 1 :], unused, str(path))


def _read_json(path: Path) -> tuple[list[_Row], list[str]]:
    machines, unused = json.loads(path.read_text(encoding="utf-8-sig")), list[str]()
    if isinstance(machines, dict):  # vendors wrap their list in an object
        lists = [key for key, value in machines.items() if isinstance(value, list) and value]
        unused = [f"{key} beside the list of machines is not used" for key in machines if key not in lists[:1]]
        machines = machines[lists[0]] if lists else []
    if not isinstance(machines, list) or not all(isinstance(machine, dict) for machine in machines):
        raise ValueError("it is no list of machines")
    flat = [dict(_flatten(machine)) for machine in machines]
    headings = list(dict.fromkeys(key for machine in flat for key in machine))
    cells = [[_format_cell(machine.get(heading)) for heading in headings] for machine in flat]
    rows = [_Row(f"{path}, machine {number}", row) for number, row in enumerate(cells, 1)]
    return [_Row(f"{path}, its keys", headings), *rows], unused


def _flatten(value: Any, name: str = "") -> Iterator[tuple[str, object]]:
    """Yield each value within a machine, with the keys that lead to it."""
    if not isinstance(value, dict | list):
        yield name, value
        return
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value, 1):
        yield from _flatten(inner, f"{name}.{key}".removeprefix("."))


def _read_workbook(path: Path) -> tuple[list[_Row], list[str]]:
    import openpyxl

    first, *others = openpyxl.load_workbook(path, read_only=True, data_only=True).worksheets
    lines = enumerate(first.iter_rows(values_only=True), 1)
    rows = [_Row(f"{path}:{number}", [_format_cell(cell) for cell in row]) for number, row in lines]
    return rows, [f"the sheet {sheet.title} is not used" for sheet in others]


def _read_csv(path: Path) -> tuple[list[_Row], list[str]]:
    """Return the rows of a CSV file. What separates its columns is the sign by which most of its headings are known."""
    text, readings = path.read_text(encoding="utf-8-sig"), list[list[_Row]]()
    for sign in ",;\t|":
        rows = csv.reader(io.StringIO(text), delimiter=sign)
        readings.append([_Row(f"{path}:{rows.line_num}", row) for row in rows])
    return max(readings, key=lambda rows: max((len(_find_columns(row.cells)) for row in rows), default=0)), []


def _format_cell(cell: object) -> str:
    return "" if cell is None else str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _list_machines(headings: Sequence[str], rows: Sequence[_Row], unused: list[str], where: str) -> DeliveryList:
    """Return what rows under these headings list. Raises AssayError as `read_delivery_file`."""
    places = _find_columns(headings)
    if missing := [field for field in NEEDED if field not in places]:
        fix = f"call it one of: {', '.join(COLUMNS[missing[0]].split())}"
        among = ", ".join(headings) or "nothing"
        raise AssayError(f"no column for {missing[0]} among {among}", where=f"{where}:1", fix=fix)
    machines, refused, seen = list[dict[str, Any]](), list[str](), dict[str, str]()
    for row in rows:
        if not any(cell.strip() for cell in row.cells):
            continue
        try:
            if any(cell.strip() for cell in row.cells[len(headings) :]):
                raise AssayError("the row has more cells than the headings", where=row.where, fix="quote the commas")
            machine = _read_row(row, places)
            _refuse_seen(machine, row.where, seen)
        except AssayError as mistake:
            refused.append(str(mistake))
        else:
            machines.append(machine)
    if not machines:
        reasons = "\n".join(refused)
        raise AssayError(reasons or "the list has no machine", where="" if refused else where, fix="give it a good row")
    return DeliveryList(machines, [*unused, *_describe_unused(headings, rows, places)], refused)


def _find_columns(headings: Sequence[str]) -> dict[str, list[int]]:
    """Return field → columns. A heading that no list has is one by the word MAC or GUID, or by its last key."""
    plain = [_plain(heading) for heading in headings]
    columns: dict[str, list[int]] = {}
    for name, field in FIELDS.items():
        if name in plain:
            columns.setdefault(field, [plain.index(name)])
    for place, heading in enumerate(headings):
        words = {*re.findall(r"[a-z]+", heading.lower()), *map(str.lower, CAMEL_WORD.findall(heading))}
        field = FIELDS.get(_plain(heading.rpartition(".")[2]), "")
        if words & OTHER_DEVICES:
            continue
        if "mac" in words:
            columns.setdefault("bmc_mac" if words & BMC_WORDS else "mac", [place])
        elif words & {"guid", "guids"}:
            columns.setdefault("hca_guids", []).append(place)
        elif field in ("rack", "u", "top_u"):  # placement.rack, but gpus.1.serial is no machine's
            columns.setdefault(field, [place])
    return columns


def _plain(heading: str) -> str:
    return re.sub(r"[^a-z0-9]", "", heading.lower())


def _describe_unused(
    headings: Sequence[str], rows: Sequence[_Row], places: Mapping[str, Sequence[int]]
) -> Iterator[str]:
    """Yield a text for each column that no field is read from, with the nearest heading that is known."""
    used = {place for some in places.values() for place in some}
    for place, heading in enumerate(headings):
        if place in used:
            continue
        if not heading.strip():
            if any("".join(row.cells[place : place + 1]).strip() for row in rows):
                yield f"the column {place + 1} has no heading, and is not used"
            continue
        (near,) = difflib.get_close_matches(_plain(heading.rpartition(".")[2] or heading), FIELDS, n=1, cutoff=0)
        field = FIELDS[near]
        read = f", which is read from the column {headings[places[field][0]]}" if field in places else ""
        yield f"the column {heading} is not used; the nearest that is known is {near}, for {field}{read}"


def _read_row(row: _Row, places: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    cells = {field: " ".join(cell for at in some for cell in row.cells[at : at + 1]) for field, some in places.items()}
    cells = {field: text.strip() for field, text in cells.items() if text.strip()}
    for field in NEEDED:
        if field not in cells:
            raise AssayError(f"the row has no {field}", where=row.where, fix="fill it in, or remove the row")
    machine: dict[str, Any] = {"serial_number": cells["serial_number"], "name": cells.get("name", "").lower()}
    for field in ("bmc_mac", "mac"):
        if field in cells:
            digits = re.sub(r"[^0-9a-f]", "", cells[field].lower())
            if not _MAC_DIGITS.fullmatch(digits):
                message, fix = f"{field} {cells[field]} is no MAC address", "it has twelve hexadecimal digits"
                raise AssayError(message, where=row.where, fix=fix)
            machine[field] = ":".join(digits[place : place + 2] for place in range(0, 12, 2))
    machine |= {"rack": cells["rack"], **_read_units(cells, row.where)}
    machine |= {"pdu": cells["pdu"]} if "pdu" in cells else {}
    if "hca_guids" in cells:
        guids = re.split(r"[\s;,]+", cells["hca_guids"].lower())
        machine["hca_guids"] = [f"0x{re.sub(r'^0x|[:-]', '', guid)}" for guid in guids if guid]
    if "endorsement_key_sha256" in cells:
        machine["endorsement_key_sha256"] = cells["endorsement_key_sha256"].lower()
    try:
        ExpectedMachine.model_validate({**machine, "name": machine["name"] or "todo"})
    except ValidationError as refusal:
        first = refusal.errors()[0]
        message = f"{first['loc'][0]} {first['input']}: {first['msg']}"
        raise AssayError(message, where=row.where, fix="correct the cell, or remove the row") from None
    return machine


def _read_units(cells: Mapping[str, str], where: str) -> dict[str, int]:
    """Return the lowest unit, and the highest where the list says it, by a range, a column of its own or a height."""
    units = list[int]()
    for field in ("u", "top_u", "height_u"):
        if field not in cells:
            continue
        if not (match := _UNITS.fullmatch(cells[field])):
            raise AssayError(f"{cells[field]} is no rack unit", where=where, fix="write 14, or both ends: 14-17")
        numbers = [int(number) for number in match.groups() if number]
        units += [min(units) + numbers[0] - 1] if field == "height_u" else numbers
    return {"u": min(units)} | ({"top_u": max(units)} if len(units) > 1 else {})


def _refuse_seen(machine: Mapping[str, Any], where: str, seen: dict[str, str]) -> None:
    """Raise AssayError for a serial number, address, name or place that an earlier row has; else note this row's."""
    own = [str(machine[field]) for field in ("serial_number", "bmc_mac", "mac", "name") if machine.get(field)]
    own += [f"{machine['rack']} U{u}" for u in range(machine["u"], machine.get("top_u", machine["u"]) + 1)]
    for text in own:
        if text.lower() in seen:
            raise AssayError(f"{text} stands in {seen[text.lower()]} too", where=where, fix="remove the wrong row")
    seen.update(dict.fromkeys(map(str.lower, own), where))


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
