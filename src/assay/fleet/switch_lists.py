"""Reads the files that a fabric design names for its switches: one a line, as CSV, wherever the site keeps them."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from assay.fleet.repository_tree import RepositoryTree
from assay.fleet.validation_problems import FleetProblem
from assay.model.fabric.ports_and_cables import normalize_guid
from assay.model.fabric.switch_tiers import SwitchListFile, parse_switch_position

MAX_LIST_BYTES = 4 * 1024 * 1024  # bytes of one file
SWITCH_LIST_CODE = "ASY0110"
LISTABLE_TIERS = ("leaves", "spines", "cores")
SWITCH_COLUMNS = ("name", "rack", "u", "guid")


class SwitchListError(ValueError):
    """A file that cannot be read, with every reason."""

    def __init__(self, *problems: FleetProblem) -> None:
        super().__init__(problems[0].message)
        self.problems = problems


def insert_switch_lists(data: Mapping[str, Any], tree: RepositoryTree) -> Mapping[str, Any]:
    """Return a design with the lines of its files in their place; anything else as it is. Raises Unlisted."""
    found = dict(data)
    for tier in LISTABLE_TIERS:
        rules = data.get(tier)
        at = rules.get("at") if isinstance(rules, dict) else None
        if isinstance(rules, dict) and isinstance(at, dict) and (file := _list_file(at)):
            name = rules.get("name")
            found[tier] = {**rules, "at": _read_switches(tree, file, name if isinstance(name, str) else "")}
    return found


def _list_file(at: dict[str, Any]) -> str:
    """Return the file that is named; nothing where the model will refuse the entry."""
    try:
        return SwitchListFile.model_validate(at).file
    except ValidationError:
        return ""


def _read_switches(tree: RepositoryTree, file: str, pattern: str) -> list[dict[str, Any]]:
    """Return the switches of a file whose names follow a pattern, in its order."""
    problems: list[FleetProblem] = []
    kept: list[tuple[tuple[int, ...], dict[str, Any]]] = []
    for line, row in _rows(_text(tree, file), file):
        place = parse_switch_position(pattern, row["name"])
        if place is None:
            continue
        try:
            kept.append((place, {**row, "u": int(row["u"]), "guid": normalize_guid(row["guid"])}))
        except ValueError as wrong:
            problems.append(
                FleetProblem(file, line, 1, SWITCH_LIST_CODE, "error", f"{row['name']}: {wrong}", "correct the line")
            )
    if not kept and not problems:
        said = f"no name of it follows the pattern {pattern}"
        problems.append(
            FleetProblem(file, 0, 0, SWITCH_LIST_CODE, "error", said, "correct the tier's `name`, or the file")
        )
    if problems:
        raise SwitchListError(*problems)
    return [row for _, row in sorted(kept, key=lambda one: one[0])]


def _text(tree: RepositoryTree, file: str) -> str:
    try:
        if ".." in file.split("/"):
            raise FileNotFoundError(2, "outside of the repository", file)
        return tree.read(file, MAX_LIST_BYTES + 1)[: MAX_LIST_BYTES + 1].decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        said = f"cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}"
        raise SwitchListError(
            FleetProblem(file, 0, 0, SWITCH_LIST_CODE, "error", said, "keep the file in the repository")
        ) from None


def _rows(text: str, file: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield each line with its number, its columns by name."""
    reader = csv.reader(text.splitlines())
    header = [name.strip().lower() for name in next(reader, [])]
    if missing := [name for name in SWITCH_COLUMNS if name not in header]:
        said = f"the column {missing[0]} is missing"
        raise SwitchListError(
            FleetProblem(file, 1, 1, SWITCH_LIST_CODE, "error", said, f"begin with a line `{','.join(SWITCH_COLUMNS)}`")
        )
    for cells in reader:
        row = dict(zip(header, (cell.strip() for cell in cells), strict=False))
        if any(cells):
            yield reader.line_num, {name: row.get(name, "") for name in SWITCH_COLUMNS}
