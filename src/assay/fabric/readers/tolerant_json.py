"""Reads JSON of other tools, which may be cut off or have any shape."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

NUMBER = re.compile(r"\s*([+-]?[0-9]{1,20}(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,4})?)(?![0-9.])")


FOREIGN = re.compile(r"(?m)^(?![ \t]*(?:[\"{}\],]|\[\s*(?:[\[{\"\]\d-]|$)|-?\d|true|false|null)).*\S.*$")
"""A line that cannot stand in JSON, such as a prompt (`[root@head ~]# cat links.json`)."""
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')
CLOSING = {"[": "]", "{": "}"}


def load_json(text: str, problems: list[str], notes: list[str] | None = None) -> Any:
    """Return the document, or None and a problem if it cannot be read. A name that occurs twice is a problem too.

    Foreign lines are skipped, and `notes` names them; without it they are problems. Of a text that was cut off, the
    entries that are whole are returned, with a problem.
    """
    twice: list[str] = []

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice.extend(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        return found

    try:
        document = _load(text, once, problems, problems if notes is None else notes)
    except (ValueError, RecursionError) as error:
        problems.append(f"this is not whole JSON: {str(error)[:120]}")
        return None
    problems += [f"{name[:40]!r} occurs twice in one object" for name in dict.fromkeys(twice)]
    return document


def _load(text: str, hook: Callable[[list[tuple[str, Any]]], Any], problems: list[str], notes: list[str]) -> Any:
    try:
        return json.loads(text, object_pairs_hook=hook)
    except ValueError:
        plain = FOREIGN.sub("", text)
    whole = plain.strip()
    cut = _cut_at_whole_entry(whole)
    try:
        document = json.loads(whole, object_pairs_hook=hook)
    except ValueError:
        if not cut:
            raise
        document = json.loads(cut, object_pairs_hook=hook)
        problems.append("this is not whole JSON: the text was cut off, and only the entries before that were read")
    notes += [
        f"line {text.count(chr(10), 0, found.start()) + 1} is no JSON and was skipped: {found[0].strip()[:80]!r}"
        for found in FOREIGN.finditer(text)
    ]
    return document


def _cut_at_whole_entry(text: str) -> str:
    """Return a text that was cut off up to its last whole entry of a list, with all brackets closed; "" without one."""
    opened: list[str] = []
    end, to_close = 0, ""
    for token in TOKEN.finditer(text):
        if token[0] in CLOSING:
            opened.append(token[0])
        elif token[0] in "]}" and opened:
            opened.pop()
            if token[0] == "}" and opened and opened[-1] == "[":
                end, to_close = token.end(), "".join(CLOSING[each] for each in reversed(opened))
    return text[:end] + to_close if opened else ""


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
