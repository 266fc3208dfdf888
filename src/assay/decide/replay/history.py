"""Reads a history of faults: which node showed which fault, and when. It comes from a file of people, or the ledger.

A file has one JSON object per line. Every error names the number of its line, and its fields.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, ValidationError, model_validator

from assay.decide.state.node_state import NodeState
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.faults.fault_record import FaultRecord
from assay.model.node import Node
from assay.model.outside_documents import describe_mistakes
from assay.model.timestamps import parse_time

HISTORY_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""The zero of times in seconds, whatever they were counted from."""
LATEST_TIME = datetime(2999, 12, 31, tzinfo=UTC)
MAX_TEXT_LENGTH = 500
TIME_FIX = "seconds (not milliseconds), or ISO 8601 such as 2026-11-21T12:00:00Z"


def format_elapsed(seconds: float) -> str:
    """Return a time of a file that counts in seconds, for people: `38 d 00:12:05`."""
    days, rest = divmod(round(seconds), 86400)
    return f"{days} d {rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"


def clean_text(text: str) -> str:
    """Return text that any terminal and any encoding can show, not too long."""
    held = "".join(letter if letter.isprintable() else "�" for letter in text[: MAX_TEXT_LENGTH + 1])
    return held if len(held) <= MAX_TEXT_LENGTH else f"{held[: MAX_TEXT_LENGTH - 1]}…"


HistoryEventKind = Literal["fault", "clear", "use"]


@frozen
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


@frozen
class FaultHistory:
    """Events in the order of their times. `in_seconds`: the history gives times in seconds, so the result does too.

    `unread` are the fields of lines that replay does not use, by name.
    """

    events: tuple[HistoryEvent, ...]
    in_seconds: bool = False
    unread_fields: tuple[str, ...] = ()


EXAMPLE_LINE = '{"time": 0, "node": "n0001", "event": "fault", "fault": "gpu.xid.79"}'


class _LineTime(NamedTuple):
    at: datetime
    in_seconds: bool


def _parse_time(time: Any) -> _LineTime:
    """Return a time in seconds or in ISO 8601, in UTC. Raises ValueError."""
    in_seconds = type(time) in (int, float)
    try:
        at = HISTORY_EPOCH + timedelta(seconds=time) if in_seconds else datetime.fromisoformat(time)
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(TIME_FIX) from None
    if not HISTORY_EPOCH <= at <= LATEST_TIME:
        raise ValueError(f"a year from 1970 to 2999; {TIME_FIX}")
    return _LineTime(at, in_seconds)


_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,252}$")]
_NameOrNone = Annotated[_Name | Literal[""], BeforeValidator(lambda name: "" if name is None else name)]


class _HistoryLine(BaseModel):
    """A line as it is written. Fields that replay does not use are kept apart."""

    model_config = ConfigDict(extra="allow", strict=True)

    time: Annotated[_LineTime, PlainValidator(_parse_time)]
    node: _Name
    event: HistoryEventKind
    fault: _NameOrNone = ""
    part: _NameOrNone = ""
    in_use: bool | None = None
    detail: Any = None
    pool: _NameOrNone = ""
    rack: _NameOrNone = ""

    @model_validator(mode="after")
    def _says_what_happened(self) -> _HistoryLine:
        if self.event == "use" and self.in_use is None:
            raise ValueError("in_use is missing: an event of kind use says whether the node is in use")
        if self.event != "use" and not self.fault:
            raise ValueError("fault is missing")
        return self

    def make_event(self, number: int) -> HistoryEvent:
        """Return the event of the line with this number."""
        detail = "" if self.detail is None else self.detail
        return HistoryEvent(
            at=self.time.at,
            node=self.node,
            kind=self.event,
            fault=self.fault.lower(),
            part=self.part,
            in_use=self.in_use,
            detail=clean_text(detail if isinstance(detail, str) else json.dumps(detail)),
            pool=self.pool,
            rack=self.rack,
            line=number,
        )


def read_history(lines: Iterable[bytes], name: str) -> FaultHistory:
    """Return the history in these lines; empty lines count in the numbering. Raises AssayError for a bad line."""
    events: list[HistoryEvent] = []
    forms, unread = set[bool](), set[str]()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{name}:{number}"
        try:
            read = _HistoryLine.model_validate_json(line)
        except ValidationError as error:
            raise AssayError(describe_mistakes(error, "the line"), where=where, fix=f"write {EXAMPLE_LINE}") from None
        forms.add(read.time.in_seconds)
        if len(forms) > 1:
            message = "time: it is in another form than those before"
            raise AssayError(message, where=where, fix="seconds or ISO 8601, all lines alike")
        events.append(read.make_event(number))
        unread |= (read.model_extra or {}).keys()
    fields = tuple(sorted(map(clean_text, unread)))
    return FaultHistory(tuple(sorted(events, key=attrgetter("at"))), True in forms, fields)


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
