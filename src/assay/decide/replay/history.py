"""Reads a history of faults: which node showed which fault, and when. It comes from a file of people, or the ledger.

A file has one JSON object per line. Every error names the number of its line, and the fix.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, Literal, TypeVar, get_args

from assay.decide.state.node_state import NodeState
from assay.model.errors import AssayError
from assay.model.faults.fault_record import FaultRecord
from assay.model.node import Node
from assay.model.timestamps import parse_time

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

    def __init__(self, mistake: str, fix: str) -> None:
        super().__init__(mistake)
        self.what, self.fix = mistake, fix


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


EVENT_FIELDS = frozenset({"time", "node", "event", "fault", "part", "in_use", "detail", "pool", "rack"})
EXAMPLE_LINE = '{"time": 0, "node": "n0001", "event": "fault", "fault": "gpu.xid.79"}'


def read_history(lines: Iterable[bytes], name: str) -> FaultHistory:
    """Return the history in these lines; empty lines count in the numbering. Raises AssayError for a bad line."""
    events: list[HistoryEvent] = []
    in_seconds, unread = False, set[str]()
    for plain, event in read_json_lines(lines, name, _event, EXAMPLE_LINE):
        events.append(event)
        in_seconds = not isinstance(plain["time"], str)
        unread |= plain.keys() - EVENT_FIELDS
    fields = tuple(sorted(clean_text(field) for field in unread))
    return FaultHistory(tuple(sorted(events, key=attrgetter("at"))), in_seconds, fields)


def _event(plain: dict[str, Any], number: int) -> HistoryEvent:
    kind = plain.get("event")
    if kind not in HISTORY_EVENT_KINDS:
        raise InvalidLineError(f"event is {show_value(kind)}", f"use one of {', '.join(HISTORY_EVENT_KINDS)}")
    in_use = plain.get("in_use")
    if in_use is not None and not isinstance(in_use, bool):
        raise InvalidLineError(f"in_use is {show_value(in_use)}", "true or false")
    if kind == "use" and in_use is None:
        raise InvalidLineError("in_use is missing", "an event of kind use says whether the node is in use")
    detail = "" if plain.get("detail") is None else plain["detail"]
    return HistoryEvent(
        at=parse_history_time(plain.get("time")),
        node=_name(plain, "node", needed=True),
        kind=kind,
        fault=_name(plain, "fault", needed=kind != "use").lower(),
        part=_name(plain, "part"),
        in_use=in_use,
        detail=clean_text(detail if isinstance(detail, str) else json.dumps(detail)),
        pool=_name(plain, "pool"),
        rack=_name(plain, "rack"),
        line=number,
    )


def _name(plain: dict[str, Any], field: str, *, needed: bool = False) -> str:
    return read_name(plain.get(field), field, EXAMPLE_LINE, needed=needed)


def list_fault_events(
    node_states: Iterable[NodeState], nodes: Collection[Node], start: datetime, now: datetime
) -> tuple[HistoryEvent, ...]:
    """Return the faults of these nodes from `start` to `now`, in the order of their times.

    A fault that was open at `start` begins there. One that nothing has cleared stays.
    """
    known = {node.name: node for node in nodes}
    events = [
        event
        for node_state in node_states
        if node_state.node in known
        for record in node_state.faults
        for event in _list_events(known[node_state.node], record, start, now)
    ]
    return tuple(sorted(events, key=attrgetter("at", "node", "fault", "part")))


def _list_events(node: Node, record: FaultRecord, start: datetime, now: datetime) -> Iterator[HistoryEvent]:
    cleared = parse_time(record.cleared_at) if record.cleared_at else None
    if cleared and cleared <= start:
        return
    part = record.subject.removeprefix(node.subject).lstrip("/")
    seen = {max(start, parse_time(at)) for at in (record.first_seen, *record.times, record.last_seen) if at}
    for at in sorted(at for at in seen if at <= now):
        yield HistoryEvent(at, node.name, "fault", record.fault_class, part, detail=record.detail)
    if cleared and cleared <= now:
        yield HistoryEvent(max(cleared, *seen), node.name, "clear", record.fault_class, part)
