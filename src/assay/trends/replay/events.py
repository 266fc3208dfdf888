"""What a history of faults holds: who showed what, and when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""From which times in seconds count, whatever they were counted from."""
EventKind = Literal["fault", "clear", "use"]
KINDS: tuple[EventKind, ...] = get_args(EventKind)


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a history, at `at` (UTC).

    `kind` "fault": the node shows `fault`; "clear": it no longer does; "use": only `in_use` is told. `part` is the part
    of the node, "" for all of it. `in_use` says whether customers use the node from now on, None leaves it as it was.
    `pool` and `rack` say where a node stands that no inventory knows. `line` counts from 1.
    """

    at: datetime
    node: str
    kind: EventKind
    fault: str = ""
    part: str = ""
    in_use: bool | None = None
    detail: str = ""
    pool: str = ""
    rack: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class History:
    """Events in the order of their times. `in_seconds`: times were told in seconds, and are to be told so again.

    `unread` are the fields that lines have and nobody asks for, by name.
    """

    events: tuple[Event, ...]
    in_seconds: bool = False
    unread: tuple[str, ...] = ()
