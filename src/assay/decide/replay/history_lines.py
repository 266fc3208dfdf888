"""Reads files of JSON objects, one per line, that people made: times, names, and the error in a line with its fix."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from assay.model.errors import AssayError

HISTORY_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""The zero of times in seconds, whatever they were counted from."""
LATEST_TIME = datetime(2999, 12, 31, tzinfo=UTC)
NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,252}")
MAX_TEXT_LENGTH = 500
NAME_FIX = "letters, digits, dots, dashes, colons and underscores"
LineT = TypeVar("LineT")


def format_elapsed(seconds: float) -> str:
    """Return a time of a file that counts in seconds, for people: `38 d 00:12:05`."""
    days, rest = divmod(round(seconds), 86400)
    return f"{days} d {rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"


class InvalidLineError(Exception):
    """The error in a line, and its fix."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.what, self.fix = what, fix


def read_json_lines(
    lines: Iterable[bytes], name: str, parse: Callable[[dict[str, Any], int], LineT], example: str
) -> Iterator[tuple[dict[str, Any], LineT]]:
    """Yield each object, with what `parse` makes of it and of its line number; empty lines count in the numbering.

    All times must have the same form. Raises AssayError for a bad line.
    """
    in_seconds: set[bool] = set()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            plain = _read_object(line, example)
            parsed = parse(plain, number)
            in_seconds.add(not isinstance(plain["time"], str))
            if len(in_seconds) > 1:
                raise InvalidLineError(
                    "its time is in another form than those before", "seconds or ISO 8601, all lines alike"
                )
        except InvalidLineError as wrong:
            raise AssayError(wrong.what, where=f"{name}:{number}", fix=wrong.fix) from None
        except RecursionError:
            raise AssayError("the JSON is nested too deep", where=f"{name}:{number}", fix=f"write {example}") from None
        yield plain, parsed


def _read_object(line: bytes, example: str) -> dict[str, Any]:
    try:
        plain = json.loads(line)
    except ValueError as error:  # of JSON, of UTF-8, of a number without end
        raise InvalidLineError(f"this is no JSON: {clean_text(str(error))}", "one JSON object a line") from None
    if not isinstance(plain, dict):
        raise InvalidLineError("this is no JSON object", f"write {example}")
    return plain


def parse_history_time(time: Any) -> datetime:
    """Return a time in seconds or in ISO 8601, in UTC. Raises InvalidLineError."""
    if isinstance(time, str):
        return _parse_iso_time(time)
    if (
        type(time) not in (int, float)
        or not math.isfinite(time)
        or not 0 <= time <= (LATEST_TIME - HISTORY_EPOCH).total_seconds()
    ):
        raise InvalidLineError(
            f"time is {show_value(time)}", "seconds (not milliseconds), or ISO 8601 such as 2026-11-21T12:00:00Z"
        )
    return HISTORY_EPOCH + timedelta(seconds=time)


def _parse_iso_time(time: str) -> datetime:
    try:
        read = datetime.fromisoformat(time)
        at = read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidLineError(
            f"time is {show_value(time)}", "ISO 8601 such as 2026-11-21T12:00:00Z, or seconds"
        ) from None
    if not HISTORY_EPOCH <= at <= LATEST_TIME:
        raise InvalidLineError(f"time is {show_value(time)}", "a year from 1970 to 2999")
    return at


def read_name(value: Any, field: str, example: str, *, needed: bool = False) -> str:
    """Return the name in a field, "" where there is none. Raises InvalidLineError."""
    if value is None or value == "":
        if needed:
            raise InvalidLineError(f"{field} is missing", f"write {example}")
        return ""
    if not isinstance(value, str) or not NAME_PATTERN.fullmatch(value):
        raise InvalidLineError(f"{field} is {show_value(value)}", NAME_FIX)
    return value


def show_value(value: Any) -> str:
    """Return a value as it stands in a line."""
    return "missing" if value is None else clean_text(json.dumps(value))


def clean_text(text: str) -> str:
    """Return text that any terminal and any encoding can show, not too long."""
    held = "".join(letter if letter.isprintable() else "�" for letter in text[: MAX_TEXT_LENGTH + 1])
    return held if len(held) <= MAX_TEXT_LENGTH else f"{held[: MAX_TEXT_LENGTH - 1]}…"
