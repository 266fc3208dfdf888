"""Reads JSON that may be anything: other people's tools print it, and it may be cut off."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any

NUMBER = re.compile(r"\s*([+-]?[0-9]{1,20}(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,4})?)(?![0-9.])")


def load_json(text: str, problems: list[str]) -> Any:
    """Return the document, None with a problem for a text that is no whole JSON. A name given twice is one too."""
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
    problems += [f"{name[:40]!r} stands twice in one object" for name in dict.fromkeys(twice)]
    return document


def find_object(tree: Any, *names: str) -> dict[str, Any]:
    """Return the object at a path, an empty one where there is none."""
    for name in names:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree if isinstance(tree, dict) else {}


def read_leading_number(cell: Any) -> float | None:
    """Return the number that a cell begins with (`42 [-10..80]`), None for `N/A` and the like."""
    found = NUMBER.match(str(cell)) if isinstance(cell, str | int | float) and not isinstance(cell, bool) else None
    value = float(found[1]) if found else None
    return value if value is None or math.isfinite(value) else None


def read_lanes(cell: Any) -> tuple[float, ...]:
    """Return one number a lane from `{"values": [..]}`, a list, or a text with commas; those that are none left out."""
    values = cell.get("values") if isinstance(cell, dict) else cell
    if isinstance(values, str):
        values = re.split(r"[,\s]*\[", values)[0].split(",")
    return (
        tuple(one for each in values if (one := read_leading_number(each)) is not None)
        if isinstance(values, list)
        else ()
    )
