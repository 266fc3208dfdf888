"""The lines that evidence holds, of the kernel and in its shape. Agents push evidence: what lacks the shape is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from assay.model.evidence import Evidence

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
        and _is_time(line.get("at"))
    )


def _is_number(number: Any) -> bool:
    return type(number) in (int, float) and -LONGEST_S < number < LONGEST_S


def _is_time(at: Any) -> bool:
    if at is None:
        return True
    try:
        return datetime.fromisoformat(at).tzinfo is not None
    except (TypeError, ValueError):
        return False
