"""Reads the CSV files that a fabric design names for its switches, one switch a line."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any

from pydantic import ValidationError

from assay.declare.problems import FleetProblem
from assay.declare.repository.tree import RepositoryTree
from assay.model.specs.fabric.cable import normalize_guid
from assay.model.specs.fabric.switches import SwitchListFile, parse_switch_position

MAX_LIST_BYTES = 4 * 1024 * 1024  # bytes of one file
SWITCH_LIST_CODE = "ASY0110"
LISTABLE_TIERS = ("leaves", "spines", "cores")
SWITCH_COLUMNS = ("name", "rack", "u", "guid")


class SwitchListError(ValueError):
    """A switch list that cannot be read, with all its problems."""

    def __init__(self, *problems: FleetProblem) -> None:
        super().__init__(problems[0].message)
        self.problems = problems


def insert_switch_lists(data: Mapping[str, Any], tree: RepositoryTree) -> Mapping[str, Any]:
    """Return a design's data with the switches of its list files inserted. Raises SwitchListError."""
    with_switches = dict(data)
    for tier in LISTABLE_TIERS:
        rules = data.get(tier)
        at = rules.get("at") if isinstance(rules, dict) else None
        if isinstance(rules, dict) and isinstance(at, dict) and (file := _get_list_file(at)):
            name = rules.get("name")
            with_switches[tier] = {**rules, "at": _read_switches(tree, file, name if isinstance(name, str) else "")}
    return with_switches


def _get_list_file(at: dict[str, Any]) -> str:
    """Return the file of a SwitchListFile, "" for anything else; the design's model judges that."""
    try:
        return SwitchListFile.model_validate(at).file
    except ValidationError:
        return ""


def _read_switches(tree: RepositoryTree, file: str, pattern: str) -> list[dict[str, Any]]:
    """Return the switches of a file whose names follow a pattern, in the pattern's order."""
    problems: list[FleetProblem] = []
    switches: list[tuple[tuple[int, ...], dict[str, Any]]] = []
    for line, row in _read_rows(_read_text(tree, file), file):
        position = parse_switch_position(pattern, row["name"])
        if position is None:
            continue
        try:
            switches.append((position, {**row, "u": int(row["u"]), "guid": normalize_guid(row["guid"])}))
        except ValueError as error:
            problems.append(
                FleetProblem(file, line, 1, SWITCH_LIST_CODE, "error", f"{row['name']}: {error}", "correct the line")
            )
    if not switches and not problems:
        message = f"no name of it follows the pattern {pattern}"
        fix = "correct the tier's `name`, or the file"
        problems.append(FleetProblem(file, 0, 0, SWITCH_LIST_CODE, "error", message, fix))
    if problems:
        raise SwitchListError(*problems)
    return [row for _, row in sorted(switches, key=itemgetter(0))]


def _read_text(tree: RepositoryTree, file: str) -> str:
    try:
        if ".." in file.split("/"):
            raise FileNotFoundError(2, "outside of the repository", file)
        return tree.read(file, MAX_LIST_BYTES + 1)[: MAX_LIST_BYTES + 1].decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        message = f"cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}"
        raise SwitchListError(
            FleetProblem(file, 0, 0, SWITCH_LIST_CODE, "error", message, "keep the file in the repository")
        ) from None


def _read_rows(text: str, file: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line number and columns of each line that is not empty."""
    reader = csv.reader(text.splitlines())
    header = [name.strip().lower() for name in next(reader, [])]
    if missing := [name for name in SWITCH_COLUMNS if name not in header]:
        message = f"the column {missing[0]} is missing"
        fix = f"begin with a line `{','.join(SWITCH_COLUMNS)}`"
        raise SwitchListError(FleetProblem(file, 1, 1, SWITCH_LIST_CODE, "error", message, fix))
    for cells in reader:
        row = dict(zip(header, (cell.strip() for cell in cells), strict=False))
        if any(cells):
            yield reader.line_num, {name: row.get(name, "") for name in SWITCH_COLUMNS}
