"""Reads a point-to-point sheet: one cable a line, both ends in columns, as CSV.

```
NVIDIA's cable validation tool   Rack,U,Name,HCA/Port,Rack,U,Name,Port      (also without a header)
UFM's network design             #StartDevice,StartPort,EndDevice,EndPort,LinkType
```
and what sites make of them: any order, any of the columns rack, U, name, port, GUID for either end, speed and length
for the cable, told by their headers. Either end's headers begin with a word for it (Start, Source, From, A, … End,
Destination, To, B), or stand in the order of the ends. Columns are parted by a comma, semicolon, tab or bar.
Lines above the header are passed over, as are empty ones. A line that cannot be read is told, and the others stay.

What a port in a sheet means, as technicians and tools write it.

```
7   Port 7   P7   swp7     port 7
17/1                       port 1 of cage 17, of two: 33
1/17/1                     ASIC 1, cage 17, port 1: also 33; or cage 1, port 17?, see `PortLabelScheme`
17/1/2   1/17/1/2          port 1 of cage 17, split in two, the second part
Blade 16_Port 2/20         a director switch: chip 2 of line card 16, port 20
mlx5_3   mlx5_3/1          an adapter by its kernel's name
HCA-4    HCA-4/1           the same one: UFM counts from 1
```
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from assay.fabric.link_rates_and_states import parse_rate
from assay.model.errors import AssayError
from assay.model.fabric.ports_and_cables import normalize_guid

SIDES = (
    ("start", "source", "src", "from", "near", "a"),
    ("end", "destination", "dest", "dst", "to", "far", "peer", "b"),
)
FIELDS = {
    "rack": ("rack", "cabinet", "cab"),
    "u": ("u", "ru", "unit", "rackunit", "rackposition", "elevation"),
    "name": ("name", "device", "node", "host", "hostname", "system", "switch", "devicename", "nodename"),
    "port": ("port", "hcaport", "hca", "interface", "portname", "portlabel", "portnumber"),
    "guid": ("guid", "nodeguid", "deviceguid"),
}
OF_CABLE = {
    "rate": ("speed", "linkspeed", "rate", "datarate"),
    "length": ("length", "cablelength", "lengthm", "cablelengthm"),
}
FIRST_LINES = 20
GBPS = {800: "4xXDR", 400: "4xNDR", 200: "4xHDR", 100: "4xEDR", 56: "4xFDR", 40: "4xQDR"}
COLUMNS_WITHOUT_HEADER = ("rack0", "u0", "name0", "port0", "rack1", "u1", "name1", "port1")


@dataclass(frozen=True, slots=True)
class SheetEnd:
    """One end as it is written; `u` 0 and an empty text mean that nothing is said."""

    name: str
    port: str
    rack: str = ""
    u: int = 0
    guid: str = ""


@dataclass(frozen=True, slots=True)
class SheetCable:
    """One line."""

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
    """What was read, and for each line that was not: its number and why."""

    cables: list[SheetCable] = field(default_factory=list)
    problems: list[tuple[int, str]] = field(default_factory=list)


def read_sheet(text: str) -> PointToPointSheet:
    """Read a sheet. Raises Trouble where no line of it names the columns."""
    rows = list(_rows(text.removeprefix("\ufeff")))
    first, columns = _columns(rows)
    sheet = PointToPointSheet()
    for number, cells in rows[first:]:
        try:
            sheet.cables.append(_cable(number, cells, columns))
        except ValueError as wrong:
            sheet.problems.append((number, str(wrong)))
    return sheet


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines that say something, with their numbers."""
    lines = text.splitlines()
    begun = "".join(lines[:FIRST_LINES])
    delimiter = max(",;\t|", key=begun.count)
    reader = csv.reader(lines, delimiter=delimiter)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, [cell.strip() for cell in cells]
    except csv.Error as wrong:
        raise AssayError(
            f"this is no CSV: {wrong}", where=f"line {reader.line_num}", fix="save the sheet as CSV"
        ) from None


def _columns(rows: Sequence[tuple[int, list[str]]]) -> tuple[int, dict[str, int]]:
    """Return the first line after the header, and the place of each column."""
    for place, (_, cells) in enumerate(rows[:FIRST_LINES]):
        columns = _named(cells)
        if {"name0", "name1", "port0", "port1"} <= set(columns):
            return place + 1, columns
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


def _named(cells: Sequence[str]) -> dict[str, int]:
    columns: dict[str, int] = {}
    for place, cell in enumerate(cells):
        key = re.sub(r"[^a-z]", "", cell.lower())
        for name, words in OF_CABLE.items():
            if key in words:
                columns.setdefault(name, place)
        for name, side in _fields(key):
            sides = [side] if side is not None else [0, 1]
            free = next((f"{name}{one}" for one in sides if f"{name}{one}" not in columns), None)
            if free:
                columns[free] = place
                break
    return columns


def _fields(key: str) -> Iterator[tuple[str, int | None]]:
    """Yield which column a header may mean, and of which end where it says so."""
    for name, words in FIELDS.items():
        if key in words:
            yield name, None
        for side, prefixes in enumerate(SIDES):
            if any(key.startswith(prefix) and key.removeprefix(prefix) in words for prefix in prefixes):
                yield name, side


def _cable(number: int, cells: Sequence[str], columns: dict[str, int]) -> SheetCable:
    def cell(name: str) -> str:
        return cells[columns[name]] if columns.get(name, len(cells)) < len(cells) else ""

    ends = [
        SheetEnd(cell(f"name{side}"), cell(f"port{side}"), cell(f"rack{side}"), *_place(cell, side)) for side in (0, 1)
    ]
    for end, which in zip(ends, ("first", "second"), strict=True):
        if not end.name or not end.port:
            raise ValueError(f"the {which} end has no {'port' if end.name else 'name'}")
    return SheetCable(number, ends[0], ends[1], _rate(cell("rate")), _length(cell("length")))


def _place(cell: Callable[[str], str], side: int) -> tuple[int, str]:
    unit, guid = cell(f"u{side}"), cell(f"guid{side}")
    found = re.fullmatch(r"(?:r?u)?\s*(\d{1,3})\s*u?", unit, re.IGNORECASE)
    if unit and not found:
        raise ValueError(f"{unit!r} is no unit of a rack")
    return int(found[1]) if found else 0, normalize_guid(guid) if guid else ""


def _rate(text: str) -> str:
    """Return the rate that `4xNDR`, `NDR`, `400` or `400Gb/s` means."""
    if not text or parse_rate(text):
        return text
    if parse_rate(f"4x{text.upper()}"):
        return f"4x{text.upper()}"
    found = re.fullmatch(r"(\d+)\s*(?:g|gb|gbe|gbps|gb/s|gbit/s)?", text, re.IGNORECASE)
    if not found or int(found[1]) not in GBPS:
        raise ValueError(f"{text!r} is no speed that is known: write it as 4xNDR")
    return GBPS[int(found[1])]


def _length(text: str) -> float:
    found = re.fullmatch(r"(\d{1,4}(?:\.\d+)?)\s*(?:m|meters?|metres?)?", text, re.IGNORECASE)
    if text and not found:
        raise ValueError(f"{text!r} is no length in metres")
    return round(float(found[1]), 3) if found else 0


def read_adapter_mapping(text: str) -> dict[str, str]:
    """Return what a node's ports are called, from lines `port,adapter` (`1/2,mlx5_3`); a header is passed over."""
    rows = [cells for _, cells in _rows(text.removeprefix("\ufeff"))]
    found = {cells[0]: cells[1] for cells in rows if len(cells) > 1 and re.search(r"\d", cells[0])}
    if not found:
        raise AssayError("no line of it names a port and an adapter", fix="write lines as `1/2,mlx5_3`")
    return found


PORTS_PER_CAGE = 2
_ADAPTER = re.compile(r"(?:mlx\d+_(\d+)|hca[-_ ]?(\d+))(?:[/_ ]+(?:p|port)?[ _-]?(\d+))?", re.IGNORECASE)
_BLADE = re.compile(
    r"(blade|module|line ?card|leaf|spine|l|s)[ _-]*(\d+)[ _/-]*(?:port|p|u)[ _-]*(\d+)/(\d+)", re.IGNORECASE
)
_NUMBERS = re.compile(r"(?:port|p|swp|ib)?[ _-]*(\d+(?:/\d+){0,3})", re.IGNORECASE)


class SheetPortLabel(NamedTuple):
    """What is written: the kernel's name of an adapter, the part of a director switch, the numbers of a label."""

    adapter: str = ""
    part: str = ""
    numbers: tuple[int, ...] = ()


def parse_port_label(text: str) -> SheetPortLabel:
    """Return what a port's text says. Raises ValueError."""
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
    """How a sheet labels ports of switches.

    `cages`: some label has a cage. `split`: how many parts a port has. Three numbers are ASIC, cage and port where all
    of them begin with 1, as NVIDIA's tools write them; else cage, port and part.
    """

    cages: bool = False
    split: int = 1
    asic: bool = False

    @classmethod
    def infer(cls, labels: Iterable[tuple[int, ...]]) -> PortLabelScheme:
        """Return how these labels are meant, all together."""
        every = list(labels)
        three = [label for label in every if len(label) == 3]
        asic = bool(three) and all(label[0] == 1 and label[2] <= PORTS_PER_CAGE for label in three)
        split = any(len(label) == 4 for label in every) or bool(three and not asic)
        return cls(any(len(label) > 1 for label in every), 2 if split else 1, asic)

    def find_port_number(self, label: tuple[int, ...]) -> int:
        """Return the number of a port. Raises ValueError for a label that this cannot be."""
        if len(label) == 1:
            return label[0]
        if len(label) == 4 or (len(label) == 3 and self.asic):
            label = label[1:]
        cage, port, part = (*label, 1)[:3]
        if port > PORTS_PER_CAGE or part > self.split:
            said = "/".join(map(str, label))
            raise ValueError(f"{said} is no label of a switch with {PORTS_PER_CAGE} ports a cage")
        return ((cage - 1) * PORTS_PER_CAGE + port - 1) * self.split + part
