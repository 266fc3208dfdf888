"""Reads the sections of an ibdiagnet2 `db_csv` as rows of named cells (`ibdiagnet_db_csv` has the grammar)."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeVar

from assay.fabric.reading_problems import LocalProblem
from assay.model.specs.fabric.ports_and_cables import PortId, normalize_guid

Row = Mapping[str, str]
Found = TypeVar("Found")
MARK = re.compile(r"(START|END)_(\w+)")
NOTHING = ("N/A", "NA", "")
"""The cells that mean: no value."""


class UnreadableCell(ValueError):
    """A cell does not hold what its column must hold."""


def read_sections(
    text: str, wanted: Collection[str], problems: list[str], notes: list[str] | None = None
) -> dict[str, list[Row]]:
    """Return the rows of the wanted sections, by the section's name. `notes` gets the lines that are none of a section.

    A section without an end has the rows that are whole.
    """
    tables: dict[str, list[Row]] = {}
    name, lines, foreign = "", list[str](), list[tuple[int, str]]()
    for number, line in enumerate(text.splitlines(), start=1):
        if mark := MARK.fullmatch(line.strip()):
            problems += _check_mark(number, mark, name, tables)
            if mark[1] == "END" and name in wanted:
                tables[name] = _parse_rows(name, lines, problems)
            name, lines = mark[2] if mark[1] == "START" else "", []
        elif name and ("," in line or not lines or "," not in lines[0]):
            if "," in line and len(lines) == 1 and "," not in lines[0]:  # it stands before the names of the columns
                foreign.append((number - 1, lines.pop()))
            lines.append(line)
        elif line.strip() and not line.startswith("#"):
            foreign.append((number, line))
    if name:
        whole = lines if text.endswith("\n") else lines[:-1]
        problems.append(LocalProblem(f"section {name} has no end: the text was cut off"))
        tables |= {name: _parse_rows(name, whole, problems)} if name in wanted else {}
    if notes is not None:
        notes += [f"line {number} is in no section and was skipped: {line.strip()[:80]!r}" for number, line in foreign]
    return tables


def _check_mark(number: int, mark: re.Match[str], inside: str, tables: Mapping[str, list[Row]]) -> list[str]:
    """Return a problem if a section's start or end is in the wrong place."""
    if mark[1] == "START":
        return [f"line {number}: section {inside} has no end"] if inside else []
    if mark[2] != inside:
        return [f"line {number}: section {mark[2]} ends here, but {inside or 'none'} started"]
    return [f"line {number}: there are two sections {inside}"] if inside in tables else []


def _parse_rows(name: str, lines: list[str], problems: list[str]) -> list[Row]:
    try:
        cells = [row for row in csv.reader(lines, skipinitialspace=True) if row]
    except csv.Error as error:
        problems.append(f"section {name}: {error}")
        return []
    columns = [cell.strip() for cell in cells[0]] if cells else []
    rows = [row for row in cells[1:] if len(row) == len(columns)]
    if wrong := len(cells[1:]) - len(rows):
        what = f"section {name}: {wrong} of {len(cells) - 1} rows have too few or too many cells"
        problems.append(describe_lost_rows(what, wrong))
    return [dict(zip(columns, (cell.strip() for cell in row), strict=True)) for row in rows]


def read_rows(
    tables: Mapping[str, list[Row]], name: str, read: Callable[[Row], Found | None], problems: list[str]
) -> Iterator[Found]:
    """Yield what `read` returns for each row of a section. Add a problem with the number of unreadable rows."""
    failed = 0
    for row in tables.get(name, ()):
        try:
            if (found := read(row)) is not None:
                yield found
        except UnreadableCell:
            failed += 1
    if failed:
        what = f"section {name}: {failed} of {len(tables[name])} rows cannot be read"
        problems.append(describe_lost_rows(what, failed))


def describe_lost_rows(what: str, many: int) -> str:
    """Return the problem of rows that were lost. What one row lacks shows in other sections, and puts that in doubt."""
    return LocalProblem(what) if many == 1 else what


def read_number(row: Row, *names: str) -> int:
    """Return the number in the first of these columns that has one. Raises UnreadableCell if none has."""
    for name in names:
        if re.fullmatch(r"0x[0-9a-fA-F]{1,16}|[0-9]{1,20}", cell := row.get(name, "")):
            return int(cell, 0) if cell.startswith("0x") else int(cell)
    raise UnreadableCell(names[0])


def read_guid(row: Row, *names: str) -> str:
    """Return the GUID in the first of these columns that has one. Raises UnreadableCell if none has."""
    for name in names:
        if found := re.fullmatch("(?:0x)?([0-9a-fA-F]{1,16})", row.get(name, "")):
            return normalize_guid(found[1])
    raise UnreadableCell(names[0])


def read_row_port(row: Row) -> PortId:
    """Return the port of a row. Raises UnreadableCell if the row names none."""
    return PortId(read_guid(row, "NodeGuid", "NodeGUID"), read_number(row, "PortNum", "PortNumber", "LocalPortNum"))


def read_text(row: Row, name: str) -> str:
    """Return a cell's text, "" for a cell that means: no value."""
    return "" if (cell := row.get(name, "")) in NOTHING else cell
