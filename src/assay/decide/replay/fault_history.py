"""Reads a history of faults: one JSON object per line. Every error names the number of its line.

A history says which node showed which fault, and when.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any, Literal, get_args

from assay.decide.replay.history_lines import (
    InvalidLineError,
    clean_text,
    parse_history_time,
    read_json_lines,
    read_name,
    show_value,
)

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

    @property
    def says_use(self) -> bool:
        """Whether any event says that customers use a node."""
        return any(event.in_use for event in self.events)


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
    told = tuple(sorted(clean_text(field) for field in unread))
    return FaultHistory(tuple(sorted(events, key=attrgetter("at"))), in_seconds, told)


def _event(plain: dict[str, Any], number: int) -> HistoryEvent:
    kind = plain.get("event")
    if kind not in HISTORY_EVENT_KINDS:
        raise InvalidLineError(f"event is {show_value(kind)}", f"use one of {', '.join(HISTORY_EVENT_KINDS)}")
    in_use = plain.get("in_use")
    if in_use is not None and not isinstance(in_use, bool):
        raise InvalidLineError(f"in_use is {show_value(in_use)}", "true or false")
    if kind == "use" and in_use is None:
        raise InvalidLineError("in_use is missing", "an event of kind use says whether the node is in use")
    return HistoryEvent(
        at=parse_history_time(plain.get("time")),
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


def _name(plain: dict[str, Any], field: str, *, needed: bool = False) -> str:
    return read_name(plain.get(field), field, EXAMPLE_LINE, needed=needed)


def _detail(detail: Any) -> str:
    if detail is None:
        return ""
    return clean_text(detail if isinstance(detail, str) else json.dumps(detail))
