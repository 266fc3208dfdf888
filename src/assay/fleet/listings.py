"""Reads the files that a fabric design names for its switches: one a line, as CSV, wherever the site keeps them."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from assay.fleet.problem import Problem
from assay.fleet.tree import Tree
from assay.model.cable import guid_of
from assay.model.switches import Listing
from assay.model.tiers import place_in

MOST = 4 * 1024 * 1024  # bytes of one file
CODE = "ASY0110"
TIERS = ("leaves", "spines", "cores")
COLUMNS = ("name", "rack", "u", "guid")


class Unlisted(ValueError):
    """A file that cannot be read, with every reason."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(problems[0].message)
        self.problems = problems


def with_files(data: Mapping[str, Any], tree: Tree) -> Mapping[str, Any]:
    """Return a design with the lines of its files in their place; anything else as it is. Raises Unlisted."""
    found = dict(data)
    for tier in TIERS:
        rules = data.get(tier)
        at = rules.get("at") if isinstance(rules, dict) else None
        if isinstance(rules, dict) and isinstance(at, dict) and (file := _file(at)):
            name = rules.get("name")
            found[tier] = {**rules, "at": _switches(tree, file, name if isinstance(name, str) else "")}
    return found


def _file(at: dict[str, Any]) -> str:
    """Return the file that is named; nothing where the model will refuse the entry."""
    try:
        return Listing.model_validate(at).file
    except ValidationError:
        return ""


def _switches(tree: Tree, file: str, pattern: str) -> list[dict[str, Any]]:
    """Return the switches of a file whose names follow a pattern, in its order."""
    problems: list[Problem] = []
    kept: list[tuple[tuple[int, ...], dict[str, Any]]] = []
    for line, row in _rows(_text(tree, file), file):
        place = place_in(pattern, row["name"])
        if place is None:
            continue
        try:
            kept.append((place, {**row, "u": int(row["u"]), "guid": guid_of(row["guid"])}))
        except ValueError as wrong:
            problems.append(Problem(file, line, 1, CODE, "error", f"{row['name']}: {wrong}", "correct the line"))
    if not kept and not problems:
        said = f"no name of it follows the pattern {pattern}"
        problems.append(Problem(file, 0, 0, CODE, "error", said, "correct the tier's `name`, or the file"))
    if problems:
        raise Unlisted(*problems)
    return [row for _, row in sorted(kept, key=lambda one: one[0])]


def _text(tree: Tree, file: str) -> str:
    try:
        if ".." in file.split("/"):
            raise FileNotFoundError(2, "outside of the repository", file)
        return tree.read(file, MOST + 1)[: MOST + 1].decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        said = f"cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}"
        raise Unlisted(Problem(file, 0, 0, CODE, "error", said, "keep the file in the repository")) from None


def _rows(text: str, file: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield each line with its number, its columns by name."""
    reader = csv.reader(text.splitlines())
    header = [name.strip().lower() for name in next(reader, [])]
    if missing := [name for name in COLUMNS if name not in header]:
        said = f"the column {missing[0]} is missing"
        raise Unlisted(Problem(file, 1, 1, CODE, "error", said, f"begin with a line `{','.join(COLUMNS)}`"))
    for cells in reader:
        row = dict(zip(header, (cell.strip() for cell in cells), strict=False))
        if any(cells):
            yield reader.line_num, {name: row.get(name, "") for name in COLUMNS}
