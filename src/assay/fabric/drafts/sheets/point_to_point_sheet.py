"""Reads a point-to-point sheet: CSV with one cable a line and both ends in columns.

```
NVIDIA's cable validation tool   Rack,U,Name,HCA/Port,Rack,U,Name,Port      (also without a header)
UFM's network design             #StartDevice,StartPort,EndDevice,EndPort,LinkType
```
Sites vary these: the columns may come in any order. Each end may have rack, U, name, port and GUID; the cable may have
speed and length. Headers name the columns. Those of an end start or end with a word for it (Start, Source, From, A …
End, Destination, To, B, Z), or come in the order of the ends. Comma, semicolon, tab or bar separate columns. Skipped
are lines above the header, empty lines, and lines that repeat a cable from its other end. If many lines lack rack, U
and name of an end, their cells were merged with those above. A line that cannot be read is a problem, and the others
are still read.
Ports are written as in `sheet_port_labels`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from assay.fabric.link_rates_and_states import parse_rate
from assay.model.errors import AssayError
from assay.model.fabric.ports_and_cables import normalize_guid
from assay.model.text_lists import format_count

SIDES = (
    ("start", "source", "src", "from", "near", "a"),
    ("end", "destination", "dest", "dst", "to", "far", "peer", "b", "z"),
)
END_FIELDS = {
    "rack": ("rack", "cabinet", "cab"),
    "u": ("u", "ru", "unit", "rackunit", "rackposition", "elevation"),
    "name": ("name", "device", "node", "host", "hostname", "system", "switch", "devicename", "nodename"),
    "port": ("port", "hcaport", "hca", "interface", "portname", "portlabel", "portnumber"),
    "guid": ("guid", "nodeguid", "deviceguid"),
}
CABLE_FIELDS = {
    "rate": ("speed", "linkspeed", "rate", "datarate"),
    "length": ("length", "cablelength", "lengthm", "cablelengthm"),
}
METRES_A_FOOT = 0.3048
FIRST_LINES = 20
MIN_MERGED = 1 / 3
"""Our own choice: in a sheet with merged cells, so many lines or more have no name of their own at one end."""
GBPS = {800: "4xXDR", 400: "4xNDR", 200: "4xHDR", 100: "4xEDR", 56: "4xFDR", 40: "4xQDR"}
COLUMNS_WITHOUT_HEADER = ("rack0", "u0", "name0", "port0", "rack1", "u1", "name1", "port1")


@dataclass(frozen=True, slots=True)
class SheetEnd:
    """One end as it is written. `u` 0 and an empty text mean that the sheet does not have it."""

    name: str
    port: str
    rack: str = ""
    u: int = 0
    guid: str = ""


@dataclass(frozen=True, slots=True)
class SheetCable:
    """The cable of one line."""

    line: int
    a: SheetEnd
    b: SheetEnd
    rate: str = ""
    length_m: float = 0

    @property
    def ends(self) -> tuple[SheetEnd, SheetEnd]:
        """Both ends."""
        return self.a, self.b


@dataclass
class PointToPointSheet:
    """The cables that were read, and the problems: the number of each unreadable line, and the reason.

    `remarks` are what a person should review.
    """

    cables: list[SheetCable] = field(default_factory=list)
    problems: list[tuple[int, str]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def tell_open_end(self, text: str) -> None:
        """Add a remark if the last line has no end: the text may have been cut off within a name or a port."""
        if text.strip() and not text.endswith(("\n", "\r")):
            self.remarks.append(f"the last line has no end: was the file cut off after {text[-30:].strip()!r}?")


def read_sheet(text: str) -> PointToPointSheet:
    """Read a sheet. Raises AssayError if no line names the columns, or if the text is no CSV."""
    rows = list(_read_rows(text.removeprefix("\ufeff")))
    first, columns = _find_columns(rows)
    sheet = PointToPointSheet()
    lines, merged = _fill_merged_cells(rows[first:], columns)
    for number, cells in lines:
        try:
            sheet.cables.append(_read_cable(number, cells, columns))
        except ValueError as error:
            sheet.problems.append((number, str(error)))
    if merged:
        sheet.remarks.append(
            f"{format_count(merged, 'end')} without rack, U and name: read as merged with the line above"
        )
    sheet.cables = drop_mirrored(sheet.cables)
    sheet.tell_open_end(text)
    return sheet


def drop_mirrored(cables: Iterable[SheetCable]) -> list[SheetCable]:
    """Leave out the lines that repeat an earlier one from its other end, as some exports do."""
    kept: list[SheetCable] = []
    seen: set[tuple[SheetEnd, SheetEnd]] = set()
    for cable in cables:
        if (cable.b, cable.a) not in seen:
            kept.append(cable)
            seen.add(cable.ends)
    return kept


def _fill_merged_cells(
    rows: Sequence[tuple[int, list[str]]], columns: Mapping[str, int]
) -> tuple[list[tuple[int, list[str]]], int]:
    """Fill the cells that exports leave empty below the first of merged cells. Return the lines, and how many.

    A few empty cells are no merged ones: somebody forgot a name.
    """
    lines, filled = [(number, list(cells)) for number, cells in rows], 0
    for side in (0, 1):
        at = [columns[name] for name in (f"rack{side}", f"u{side}", f"name{side}") if name in columns]
        port = columns[f"port{side}"]
        empty = [index for index, (_, cells) in enumerate(lines) if max(*at, port) < len(cells)
                 and cells[port] and not any(cells[column] for column in at)]  # fmt: skip
        if len(empty) < MIN_MERGED * len(lines) or empty[:1] in ([], [0]):
            continue
        for index in empty:
            above = lines[index - 1][1]
            for column in at:
                lines[index][1][column] = above[column] if column < len(above) else ""
        filled += len(empty)
    return lines, filled


def _read_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines that are not empty, with their numbers."""
    lines = text.splitlines()
    delimiter = max(",;\t|", key="".join(lines[:FIRST_LINES]).count)
    reader = csv.reader(lines, delimiter=delimiter)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, [cell.strip() for cell in cells]
    except csv.Error as error:
        raise AssayError(
            f"this is no CSV: {error}", where=f"line {reader.line_num}", fix="save the sheet as CSV"
        ) from None


def _find_columns(rows: Sequence[tuple[int, list[str]]]) -> tuple[int, dict[str, int]]:
    """Return the index of the first row after the header, and the index of each column by its name."""
    for index, (_, cells) in enumerate(rows[:FIRST_LINES]):
        columns = _name_columns(cells)
        if {"name0", "name1", "port0", "port1"} <= set(columns):
            return index + 1, columns
    if (
        rows
        and len(rows[0][1]) == len(COLUMNS_WITHOUT_HEADER)
        and all(re.search(r"\d", rows[0][1][at]) for at in (1, 3, 5, 7))
    ):
        return 0, {name: at for at, name in enumerate(COLUMNS_WITHOUT_HEADER)}
    raise AssayError(
        "no line names the columns: a name and a port for either end",
        fix="begin with a line `Rack,U,Name,Port,Rack,U,Name,Port` or `StartDevice,StartPort,EndDevice,EndPort`",
    )


def _name_columns(cells: Sequence[str]) -> dict[str, int]:
    """Return the index of each column that a line may name: `name0` is the name of the first end."""
    columns: dict[str, int] = {}
    for index, cell in enumerate(cells):
        header = re.sub(r"[^a-z]", "", cell.lower())
        for name, words in CABLE_FIELDS.items():
            if header in words:
                columns.setdefault(name, index)
        for name, side in _match_end_fields(header):
            sides = [side] if side is not None else [0, 1]
            free = next((f"{name}{side}" for side in sides if f"{name}{side}" not in columns), None)
            if free:
                columns[free] = index
                break
    return columns


def _match_end_fields(header: str) -> Iterator[tuple[str, int | None]]:
    """Yield each field that a header may mean, and the end (0 or 1) if the header names it."""
    for name, words in END_FIELDS.items():
        if header in words:
            yield name, None
        for side, ends in enumerate(SIDES):
            spelled = {text for word in words for end in ends for text in (end + word, word + end)}
            if header in spelled:
                yield name, side


def _read_cable(number: int, cells: Sequence[str], columns: dict[str, int]) -> SheetCable:
    def cell(name: str) -> str:
        return cells[columns[name]] if columns.get(name, len(cells)) < len(cells) else ""

    ends = [
        SheetEnd(
            cell(f"name{side}"),
            cell(f"port{side}"),
            cell(f"rack{side}"),
            _parse_unit(cell(f"u{side}")),
            normalize_guid(guid) if (guid := cell(f"guid{side}")) else "",
        )
        for side in (0, 1)
    ]
    for end, which in zip(ends, ("first", "second"), strict=True):
        if not end.name or not end.port:
            raise ValueError(f"the {which} end has no {'port' if end.name else 'name'}")
    return SheetCable(number, ends[0], ends[1], _parse_rate(cell("rate")), _parse_length(cell("length")))


def _parse_unit(text: str) -> int:
    found = re.fullmatch(r"(?:r?u)?\s*(\d{1,3})\s*u?", text, re.IGNORECASE)
    if text and not found:
        raise ValueError(f"{text!r} is no unit of a rack")
    return int(found[1]) if found else 0


def _parse_rate(text: str) -> str:
    """Return the rate in `4xNDR`, `4X NDR`, `NDR`, `400`, `400Gb/s`, `2x200G` or `0.4T`. Raises ValueError for none."""
    if not text:
        return ""
    plain = re.sub(r"(?i)^(\d+)x", r"\1x", re.sub(r"[\s_-]+", "", text.upper()))
    if rate := next((rate for rate in (plain, f"4x{plain}") if parse_rate(rate)), ""):
        return rate
    found = re.fullmatch(r"(?:(\d)x)?(\d+(?:\.\d+)?)(T|M)?[A-Z/]*", plain)
    factor = {"T": 1000.0, "M": 0.001}.get(found[3] or "", 1.0) if found else 0.0
    gbps = int(found[1] or 1) * float(found[2]) * factor if found else 0.0
    known = GBPS.get(round(gbps)) or GBPS.get(round(gbps / 1000))  # some exports have Mb/s without a unit
    if not known:
        raise ValueError(f"{text!r} is no known speed: write it as 4xNDR")
    return known


def _parse_length(text: str) -> float:
    found = re.fullmatch(r"(\d{1,4}(?:\.\d+)?)\s*(?:m|meters?|metres?|(ft|feet|foot|'))?", text, re.IGNORECASE)
    if text and not found:
        raise ValueError(f"{text!r} is no length in metres or feet")
    return round(float(found[1]) * (METRES_A_FOOT if found[2] else 1), 3) if found else 0


def read_adapter_mapping(text: str) -> dict[str, str]:
    """Return the adapter of each port of a node, from lines `port,adapter` (`1/2,mlx5_3`). A header is skipped.

    Raises AssayError if there is no such line.
    """
    rows = [cells for _, cells in _read_rows(text.removeprefix("\ufeff"))]
    mapping = {cells[0]: cells[1] for cells in rows if len(cells) > 1 and re.search(r"\d", cells[0])}
    if not mapping:
        raise AssayError("no line names a port and an adapter", fix="write lines as `1/2,mlx5_3`")
    return mapping
