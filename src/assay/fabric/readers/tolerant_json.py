"""Reads JSON of other tools, which may be cut off or have any shape."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any

NUMBER = re.compile(r"\s*([+-]?[0-9]{1,20}(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,4})?)(?![0-9.])")


def load_json(text: str, problems: list[str]) -> Any:
    """Return the document, or None and a problem if it is incomplete. A name that occurs twice is a problem too."""
    twice: list[str] = []

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice.extend(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        return found

    try:
        document = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        problems.append(f"this is not whole JSON: {str(error)[:120]}")
        return None
    problems += [f"{name[:40]!r} occurs twice in one object" for name in dict.fromkeys(twice)]
    return document


def find_object(tree: Any, *names: str) -> dict[str, Any]:
    """Return the object at a path, an empty one if there is none."""
    for name in names:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree if isinstance(tree, dict) else {}


def read_leading_number(cell: Any) -> float | None:
    """Return the number at the start of a cell (`42 [-10..80]`), None for `N/A` and the like."""
    found = NUMBER.match(str(cell)) if isinstance(cell, str | int | float) and not isinstance(cell, bool) else None
    value = float(found[1]) if found else None
    return value if value is None or math.isfinite(value) else None


def read_lanes(cell: Any) -> tuple[float, ...]:
    """Return one number a lane from `{"values": [..]}`, a list, or a text with commas. Others are left out."""
    values = cell.get("values") if isinstance(cell, dict) else cell
    if isinstance(values, str):
        values = re.split(r"[,\s]*\[", values)[0].split(",")
    numbers = map(read_leading_number, values if isinstance(values, list) else [])
    return tuple(number for number in numbers if number is not None)
