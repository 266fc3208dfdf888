"""Reads a point-to-point sheet: CSV with one cable a line and both ends in columns.

```
NVIDIA's cable validation tool   Rack,U,Name,HCA/Port,Rack,U,Name,Port      (also without a header)
UFM's network design             #StartDevice,StartPort,EndDevice,EndPort,LinkType
```
Sites vary these: the columns may come in any order. Each end may have rack, U, name, port and GUID; the cable may have
speed and length. Headers name the columns. Those of an end start with a word for it (Start, Source, From, A … End,
Destination, To, B), or come in the order of the ends. Comma, semicolon, tab or bar separate columns. Lines above the
header and empty lines are skipped. A line that cannot be read is a problem, and the others are still read.

Ports are written as technicians and tools write them:

```
7   Port 7   P7   swp7     port 7
17/1                       port 1 of cage 17, with two ports a cage: port 33
1/17/1                     ASIC 1, cage 17, port 1: also port 33; or cage 1, port 17 (see `PortLabelScheme`)
17/1/2   1/17/1/2          port 1 of cage 17, split in two, the second part
Blade 16_Port 2/20         a director switch: chip 2 of line card 16, port 20
mlx5_3   mlx5_3/1          an adapter by its kernel name
HCA-4    HCA-4/1           the same one: UFM counts from 1
```
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from assay.fabric.link_rates_and_states import parse_rate
from assay.model.errors import AssayError
from assay.model.fabric.ports_and_cables import normalize_guid

SIDES = (
    ("start", "source", "src", "from", "near", "a"),
    ("end", "destination", "dest", "dst", "to", "far", "peer", "b"),
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
FIRST_LINES = 20
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
    """The cables that were read, and the problems: the number of each unreadable line, and the reason."""

    cables: list[SheetCable] = field(default_factory=list)
    problems: list[tuple[int, str]] = field(default_factory=list)


def read_sheet(text: str) -> PointToPointSheet:
    """Read a sheet. Raises AssayError if no line names the columns, or if the text is no CSV."""
    rows = list(_read_rows(text.removeprefix("\ufeff")))
    first, columns = _find_columns(rows)
    sheet = PointToPointSheet()
    for number, cells in rows[first:]:
        try:
            sheet.cables.append(_read_cable(number, cells, columns))
        except ValueError as error:
            sheet.problems.append((number, str(error)))
    return sheet


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
        for side, prefixes in enumerate(SIDES):
            if any(header.startswith(prefix) and header.removeprefix(prefix) in words for prefix in prefixes):
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
    """Return the rate in `4xNDR`, `NDR`, `400` or `400Gb/s`. Raises ValueError for any other text."""
    if not text or parse_rate(text):
        return text
    if parse_rate(f"4x{text.upper()}"):
        return f"4x{text.upper()}"
    found = re.fullmatch(r"(\d+)\s*(?:g|gb|gbe|gbps|gb/s|gbit/s)?", text, re.IGNORECASE)
    if not found or int(found[1]) not in GBPS:
        raise ValueError(f"{text!r} is no known speed: write it as 4xNDR")
    return GBPS[int(found[1])]


def _parse_length(text: str) -> float:
    found = re.fullmatch(r"(\d{1,4}(?:\.\d+)?)\s*(?:m|meters?|metres?)?", text, re.IGNORECASE)
    if text and not found:
        raise ValueError(f"{text!r} is no length in metres")
    return round(float(found[1]), 3) if found else 0


def read_adapter_mapping(text: str) -> dict[str, str]:
    """Return the adapter of each port of a node, from lines `port,adapter` (`1/2,mlx5_3`). A header is skipped.

    Raises AssayError if there is no such line.
    """
    rows = [cells for _, cells in _read_rows(text.removeprefix("\ufeff"))]
    mapping = {cells[0]: cells[1] for cells in rows if len(cells) > 1 and re.search(r"\d", cells[0])}
    if not mapping:
        raise AssayError("no line names a port and an adapter", fix="write lines as `1/2,mlx5_3`")
    return mapping


PORTS_PER_CAGE = 2
_ADAPTER = re.compile(r"(?:mlx\d+_(\d+)|hca[-_ ]?(\d+))(?:[/_ ]+(?:p|port)?[ _-]?(\d+))?", re.IGNORECASE)
_BLADE = re.compile(
    r"(blade|module|line ?card|leaf|spine|l|s)[ _-]*(\d+)[ _/-]*(?:port|p|u)[ _-]*(\d+)/(\d+)", re.IGNORECASE
)
_NUMBERS = re.compile(r"(?:port|p|swp|ib)?[ _-]*(\d+(?:/\d+){0,3})", re.IGNORECASE)


class SheetPortLabel(NamedTuple):
    """A parsed label: the kernel name of an adapter, the part of a director switch, or the numbers of a port."""

    adapter: str = ""
    part: str = ""
    numbers: tuple[int, ...] = ()


def parse_port_label(text: str) -> SheetPortLabel:
    """Return what the text of a port names. Raises ValueError for any other text."""
    if found := _ADAPTER.fullmatch(text):
        number = int(found[1]) if found[1] is not None else int(found[2]) - 1
        if number >= 0:
            return SheetPortLabel(adapter=f"mlx5_{number}", numbers=(int(found[3] or 1),))
    if found := _BLADE.fullmatch(text):
        kind = "S" if found[1].lower().startswith("s") else "L"
        return SheetPortLabel(part=f"{kind}{int(found[2])}/U{int(found[3])}", numbers=(int(found[4]),))
    if (found := _NUMBERS.fullmatch(text)) and 0 not in (numbers := tuple(map(int, found[1].split("/")))):
        return SheetPortLabel(numbers=numbers)
    raise ValueError(f"{text!r} is no port: write it as 7, Port 7, 17/1 or mlx5_3")


class PortLabelScheme(NamedTuple):
    """How a sheet labels the ports of switches.

    `cages`: some label has a cage. `split`: the number of parts of a port. `asic`: labels of three numbers are ASIC,
    cage and port, as NVIDIA's tools write them. Otherwise they are cage, port and part.
    """

    cages: bool = False
    split: int = 1
    asic: bool = False

    @classmethod
    def infer(cls, labels: Iterable[tuple[int, ...]]) -> PortLabelScheme:
        """Return the scheme of a sheet's labels. Three numbers include an ASIC if all of them start with 1."""
        every = list(labels)
        three = [label for label in every if len(label) == 3]
        asic = bool(three) and all(label[0] == 1 and label[2] <= PORTS_PER_CAGE for label in three)
        split = any(len(label) == 4 for label in every) or bool(three and not asic)
        return cls(any(len(label) > 1 for label in every), 2 if split else 1, asic)

    def find_port_number(self, label: tuple[int, ...]) -> int:
        """Return the number of a port. Raises ValueError for a label that does not fit the scheme."""
        if len(label) == 1:
            return label[0]
        if len(label) == 4 or (len(label) == 3 and self.asic):
            label = label[1:]
        cage, port, part = (*label, 1)[:3]
        if port > PORTS_PER_CAGE or part > self.split:
            text = "/".join(map(str, label))
            raise ValueError(f"{text} is no label of a switch with {PORTS_PER_CAGE} ports a cage")
        return ((cage - 1) * PORTS_PER_CAGE + port - 1) * self.split + part
