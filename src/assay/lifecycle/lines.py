"""The lines that evidence holds, of the kernel and in its shape, and a BMC's entries. What lacks the shape is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from assay.lifecycle.when import moment
from assay.model.evidence import EPOCH, LAST, Evidence

LINES = ("kernel_log", "metric_events")
"""Branches of the probe that hold lines."""
LONGEST_S = 1e10
"""Seconds that any node can have been up, or that have gone by since 1970."""


def lines_in(evidence: Evidence) -> Iterator[Mapping[str, Any]]:
    """Yield every line: `seq`, `t_s` and `text`, perhaps `source` and `at`."""
    for branch in LINES:
        lines = evidence.read("probe", branch, "lines")
        if lines.kind == "value" and isinstance(lines.value, list):
            yield from filter(_is_line, lines.value)


def last_lines(evidence: Evidence, most: int) -> Iterator[Mapping[str, Any]]:
    """Yield the last lines of each branch, `most` at the most."""
    for branch in LINES:
        lines = evidence.read("probe", branch, "lines")
        if lines.kind == "value" and isinstance(lines.value, list):
            yield from filter(_is_line, lines.value[-most:])


def events_in(evidence: Evidence) -> Iterator[Mapping[str, Any]]:
    """Yield every entry of the BMC's event log: `id`, `at` ("" where it says none), `message`, perhaps `message_id`."""
    events = evidence.read("bmc", "events")
    if events.kind == "value" and isinstance(events.value, list):
        yield from filter(_is_event, events.value)


def booted(evidence: Evidence) -> datetime | None:
    """Return when the node booted, None where that is not known."""
    uptime = evidence.read("probe", "host", "uptime_s")
    return evidence.at - timedelta(seconds=uptime.value) if _is_number(uptime.value) else None


def _is_line(line: Any) -> bool:
    return (
        isinstance(line, dict)
        and isinstance(line.get("text"), str)
        and type(line.get("seq")) is int
        and _is_number(line.get("t_s"))
        and isinstance(line.get("source", ""), str)
        and (line.get("at") is None or is_time(line["at"]))
    )


def _is_event(event: Any) -> bool:
    return (
        isinstance(event, dict)
        and isinstance(event.get("id"), str)
        and isinstance(event.get("message", ""), str)
        and (event.get("at") == "" or is_time(event.get("at")))
    )


def _is_number(number: Any) -> bool:
    return type(number) in (int, float) and -LONGEST_S < number < LONGEST_S


def is_time(at: Any) -> bool:
    """Say whether this is a time as evidence writes it, of a day that can be believed."""
    try:
        return EPOCH <= moment(at) <= LAST
    except (TypeError, ValueError, OverflowError):
        return False
