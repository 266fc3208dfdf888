"""Reads JSON that a tool printed, without believing that it is whole, small or sensible."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from assay.model.reading import ReadingTree, failed, value
from assay.node.load_tools.tool_call import quote_text


def parse_object(text: str) -> dict[str, Any]:
    """Return the first JSON object in a text; lines before and after it are skipped. Raises ValueError."""
    start = text.find("{")
    if start < 0:
        raise ValueError("no JSON object")
    try:
        found, _ = _DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(found, dict):
        raise ValueError("no JSON object")
    return found


def iterate_objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a text that has one a line; other lines are skipped."""
    for line in text.splitlines():
        if line.lstrip().startswith("{"):
            try:
                yield parse_object(line)
            except ValueError:
                continue


def _refuse(text: str) -> None:
    raise ValueError(f"{text} is no number")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def read_list(tree: Any, name: str) -> list[dict[str, Any]]:
    """Return the objects in a list of an object, none where there is no list."""
    found = tree.get(name) if isinstance(tree, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def parse_number(seen: Any) -> float | None:
    """Return a finite number, also from text; None for anything else."""
    if isinstance(seen, bool) or not isinstance(seen, int | float | str):
        return None
    try:
        number = float(seen)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def read_speed(seen: Any, factor: float = 1.0) -> ReadingTree:
    """Return a leaf for a speed: a positive number times `factor`. Nothing that worked has speed 0."""
    number = parse_number(seen)
    if number is None or number <= 0:
        return failed(f"{quote_text(seen)!r} is no speed")
    return value(round(number * factor, 3))
