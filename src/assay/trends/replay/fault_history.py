"""Reads a history of faults: one JSON object per line. Every error names the number of its line.

A history says which node showed which fault, and when.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, Literal, get_args

from assay.model.errors import AssayError

HISTORY_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""From which times in seconds count, whatever they were counted from."""
HistoryEventKind = Literal["fault", "clear", "use"]
HISTORY_EVENT_KINDS: tuple[HistoryEventKind, ...] = get_args(HistoryEventKind)


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """One line of a history, at `at` (UTC).

    `kind` "fault": the node shows `fault`; "clear": it no longer does; "use": the line says only `in_use`. `part` is
    the part of the node, "" for the whole node. `in_use` says whether customers use the node from now on; None changes
    nothing. `pool` and `rack` say where a node is that the inventory does not have. `line` counts from 1.
    """

    at: datetime
    node: str
    kind: HistoryEventKind
    fault: str = ""
    part: str = ""
    in_use: bool | None = None
    detail: str = ""
    pool: str = ""
    rack: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class FaultHistory:
    """Events in the order of their times. `in_seconds`: the history gives times in seconds, so the result does too.

    `unread` are the fields of lines that replay does not use, by name.
    """

    events: tuple[HistoryEvent, ...]
    in_seconds: bool = False
    unread_fields: tuple[str, ...] = ()


LATEST_TIME = datetime(2999, 12, 31, tzinfo=UTC)
EVENT_FIELDS = frozenset({"time", "node", "event", "fault", "part", "in_use", "detail", "pool", "rack"})
NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,252}")
MAX_TEXT_LENGTH = 500
EXAMPLE_LINE = '{"time": 0, "node": "n0001", "event": "fault", "fault": "gpu.xid.79"}'


class _InvalidLine(Exception):
    """The error in a line, and its fix."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.what, self.fix = what, fix


def read_history(lines: Iterable[bytes], name: str) -> FaultHistory:
    """Return the history in these lines; empty lines count in the numbering. Raises AssayError for a bad line."""
    events: list[HistoryEvent] = []
    in_seconds: set[bool] = set()
    unread: set[str] = set()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            plain = _object(line)
            events.append(_event(plain, number))
            in_seconds.add(not isinstance(plain["time"], str))
            if len(in_seconds) > 1:
                raise _InvalidLine(
                    "its time is in another form than those before", "seconds or ISO 8601, all lines alike"
                )
        except _InvalidLine as wrong:
            raise AssayError(wrong.what, where=f"{name}:{number}", fix=wrong.fix) from None
        except RecursionError:
            raise AssayError(
                "the JSON is nested too deep", where=f"{name}:{number}", fix=f"write {EXAMPLE_LINE}"
            ) from None
        unread |= plain.keys() - EVENT_FIELDS
    told = tuple(sorted(_clean(field) for field in unread))
    return FaultHistory(tuple(sorted(events, key=attrgetter("at"))), in_seconds == {True}, told)


def _object(line: bytes) -> dict[str, Any]:
    try:
        plain = json.loads(line)
    except ValueError as error:  # of JSON, of UTF-8, of a number without end
        raise _InvalidLine(f"this is no JSON: {_clean(str(error))}", "one JSON object a line") from None
    if not isinstance(plain, dict):
        raise _InvalidLine("this is no JSON object", f"write {EXAMPLE_LINE}")
    return plain


def _event(plain: dict[str, Any], number: int) -> HistoryEvent:
    kind = plain.get("event")
    if kind not in HISTORY_EVENT_KINDS:
        raise _InvalidLine(f"event is {_show_value(kind)}", f"use one of {', '.join(HISTORY_EVENT_KINDS)}")
    in_use = plain.get("in_use")
    if in_use is not None and not isinstance(in_use, bool):
        raise _InvalidLine(f"in_use is {_show_value(in_use)}", "true or false")
    if kind == "use" and in_use is None:
        raise _InvalidLine("in_use is missing", "an event of kind use says whether the node is in use")
    return HistoryEvent(
        at=_time(plain.get("time")),
        node=_name(plain, "node", needed=True),
        kind=kind,
        fault=_name(plain, "fault", needed=kind != "use").lower(),
        part=_name(plain, "part"),
        in_use=in_use,
        detail=_detail(plain.get("detail")),
        pool=_name(plain, "pool"),
        rack=_name(plain, "rack"),
        line=number,
    )


def _time(time: Any) -> datetime:
    if isinstance(time, str):
        return _parse_iso_time(time)
    if (
        type(time) not in (int, float)
        or not math.isfinite(time)
        or not 0 <= time <= (LATEST_TIME - HISTORY_EPOCH).total_seconds()
    ):
        raise _InvalidLine(
            f"time is {_show_value(time)}", "seconds (not milliseconds), or ISO 8601 such as 2026-11-21T12:00:00Z"
        )
    return HISTORY_EPOCH + timedelta(seconds=time)


def _parse_iso_time(time: str) -> datetime:
    try:
        read = datetime.fromisoformat(time)
        at = read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, OverflowError):
        raise _InvalidLine(
            f"time is {_show_value(time)}", "ISO 8601 such as 2026-11-21T12:00:00Z, or seconds"
        ) from None
    if not HISTORY_EPOCH <= at <= LATEST_TIME:
        raise _InvalidLine(f"time is {_show_value(time)}", "a year from 1970 to 2999")
    return at


def _name(plain: dict[str, Any], field: str, *, needed: bool = False) -> str:
    value = plain.get(field)
    if value is None or value == "":
        if needed:
            raise _InvalidLine(f"{field} is missing", f"write {EXAMPLE_LINE}")
        return ""
    if not isinstance(value, str) or not NAME_PATTERN.fullmatch(value):
        raise _InvalidLine(f"{field} is {_show_value(value)}", "letters, digits, dots, dashes, colons and underscores")
    return value


def _detail(detail: Any) -> str:
    if detail is None:
        return ""
    return _clean(detail if isinstance(detail, str) else json.dumps(detail))


def _show_value(value: Any) -> str:
    return "missing" if value is None else _clean(json.dumps(value))


def _clean(text: str) -> str:
    """Return text that any terminal and any encoding can show, not too long."""
    held = "".join(letter if letter.isprintable() else "�" for letter in text[: MAX_TEXT_LENGTH + 1])
    return held if len(held) <= MAX_TEXT_LENGTH else f"{held[: MAX_TEXT_LENGTH - 1]}…"
