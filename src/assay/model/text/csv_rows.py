"""Formats records as CSV (RFC 4180), a line each, for spreadsheets and shells."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from assay.model.facts import to_json
from assay.model.text.safe_text import escape_line

_FORMULA_STARTS = ("=", "+", "-", "@")


def format_csv(columns: Sequence[str], records: Iterable[Any]) -> Iterator[str]:
    """Yield the titles, and a line for each record.

    A column is a path into the JSON of the record, such as `pending.to`. What is missing is an empty cell. A list of
    plain values is joined by "; ", any other is JSON. A text that a spreadsheet would run as a formula gets a `'`
    before it, as OWASP recommends for CSV.
    """
    yield _format_line(columns)
    for record in map(to_json, records):
        yield _format_line([_format_cell(_find(record, column)) for column in columns])


def _format_line(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(cells)
    return line.getvalue()


def _find(record: Any, path: str) -> Any:
    """Return what stands at a path, None if nothing does."""
    for name in path.split("."):
        if not isinstance(record, Mapping):
            return None
        record = record.get(name)
    return record


def _format_cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case list() | tuple() if all(isinstance(item, str | int | float) for item in value):
            value = "; ".join(map(str, value))
        case Mapping() | list() | tuple():
            value = json.dumps(value, ensure_ascii=False)
    text = escape_line(value)
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
