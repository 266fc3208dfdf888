"""Reads a history of faults: one JSON object a line. Whatever is wrong is told with the number of its line."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any

from assay.model.errors import Trouble
from assay.trends.replay.events import EPOCH, KINDS, Event, History

LAST = datetime(2999, 12, 31, tzinfo=UTC)
FIELDS = frozenset({"time", "node", "event", "fault", "part", "in_use", "detail", "pool", "rack"})
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,252}")
LONGEST = 500
SHAPE = '{"time": 0, "node": "n0001", "event": "fault", "fault": "gpu.xid.79"}'


class _Wrong(Exception):
    """What is wrong with a line, and what to do."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.what, self.fix = what, fix


def read_history(lines: Iterable[bytes], name: str) -> History:
    """Return the history that these lines tell; empty ones count in the numbering and say nothing. Raises Trouble."""
    events: list[Event] = []
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
                raise _Wrong("its time is in another form than those before", "seconds or ISO 8601, all lines alike")
        except _Wrong as wrong:
            raise Trouble(wrong.what, where=f"{name}:{number}", fix=wrong.fix) from None
        except RecursionError:
            raise Trouble("the JSON is nested too deep", where=f"{name}:{number}", fix=f"write {SHAPE}") from None
        unread |= plain.keys() - FIELDS
    told = tuple(sorted(_clean(field) for field in unread))
    return History(tuple(sorted(events, key=attrgetter("at"))), in_seconds == {True}, told)


def _object(line: bytes) -> dict[str, Any]:
    try:
        plain = json.loads(line)
    except ValueError as error:  # of JSON, of UTF-8, of a number without end
        raise _Wrong(f"this is no JSON: {_clean(str(error))}", "one JSON object a line") from None
    if not isinstance(plain, dict):
        raise _Wrong("this is no JSON object", f"write {SHAPE}")
    return plain


def _event(plain: dict[str, Any], number: int) -> Event:
    kind = plain.get("event")
    if kind not in KINDS:
        raise _Wrong(f"event is {_shown(kind)}", f"use one of {', '.join(KINDS)}")
    in_use = plain.get("in_use")
    if in_use is not None and not isinstance(in_use, bool):
        raise _Wrong(f"in_use is {_shown(in_use)}", "true or false")
    if kind == "use" and in_use is None:
        raise _Wrong("in_use is missing", "an event of kind use says whether the node is in use")
    return Event(
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
        return _written(time)
    if type(time) not in (int, float) or not math.isfinite(time) or not 0 <= time <= (LAST - EPOCH).total_seconds():
        raise _Wrong(f"time is {_shown(time)}", "seconds (not milliseconds), or ISO 8601 such as 2026-11-21T12:00:00Z")
    return EPOCH + timedelta(seconds=time)


def _written(time: str) -> datetime:
    try:
        read = datetime.fromisoformat(time)
        at = read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, OverflowError):
        raise _Wrong(f"time is {_shown(time)}", "ISO 8601 such as 2026-11-21T12:00:00Z, or seconds") from None
    if not EPOCH <= at <= LAST:
        raise _Wrong(f"time is {_shown(time)}", "a year from 1970 to 2999")
    return at


def _name(plain: dict[str, Any], field: str, *, needed: bool = False) -> str:
    value = plain.get(field)
    if value is None or value == "":
        if needed:
            raise _Wrong(f"{field} is missing", f"write {SHAPE}")
        return ""
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise _Wrong(f"{field} is {_shown(value)}", "letters, digits, dots, dashes, colons and underscores")
    return value


def _detail(detail: Any) -> str:
    if detail is None:
        return ""
    return _clean(detail if isinstance(detail, str) else json.dumps(detail))


def _shown(value: Any) -> str:
    return "missing" if value is None else _clean(json.dumps(value))


def _clean(text: str) -> str:
    """Return text that any terminal and any encoding can bear, not too long."""
    held = "".join(letter if letter.isprintable() else "�" for letter in text[: LONGEST + 1])
    return held if len(held) <= LONGEST else f"{held[: LONGEST - 1]}…"
