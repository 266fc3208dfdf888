"""The times that logs are stamped with. Each reader returns seconds on one clock, and the time in ISO 8601.

A log that names no zone is taken as it stands, and its times are written without one. RFC 3164 names no year: that of
`before` is taken, or the one before it where the day would lie after `before`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Stamped = tuple[float, str]
Reader = Callable[[str, datetime], Stamped]
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def since_boot(text: str, _before: datetime) -> Stamped:
    """`1234.567890`, seconds since the boot."""
    return float(text), f"boot+{text.strip()}s"


def microseconds_since_boot(text: str, _before: datetime) -> Stamped:
    """`1234567890`, as /dev/kmsg has it."""
    seconds = int(text) / 1e6
    return seconds, f"boot+{seconds:.6f}s"


def ctime(text: str, _before: datetime) -> Stamped:
    """`Sun Feb 23 16:24:18 2025`, as dmesg -T has it."""
    _, month, day, clock, year = text.split()
    return _written(_at(int(year), month, int(day), clock))


def syslog(text: str, before: datetime) -> Stamped:
    """`Nov 21 18:00:00`, RFC 3164 and journalctl's own."""
    month, day, clock = text.split()
    for year in range(before.year, before.year - 9, -1):
        try:
            at = _at(year, month, int(day), clock)
        except ValueError:
            continue  # the 29th of February
        if at <= before.replace(tzinfo=None) + timedelta(days=1):
            return _written(at)
    raise ValueError(f"no such day: {text}")


@functools.lru_cache(maxsize=4096)
def iso(text: str, _before: datetime) -> Stamped:
    """`2026-11-21T18:00:00.123456+00:00`, RFC 5424, and with a comma or a zone without a colon."""
    return _written(datetime.fromisoformat(text.replace(",", ".")))


def epoch_microseconds(text: str, _before: datetime) -> Stamped:
    """`1700000000123456`, as the journal has it."""
    return _written(datetime.fromtimestamp(int(text) / 1e6, UTC))


@functools.lru_cache(maxsize=4096)
def _at(year: int, month: str, day: int, clock: str) -> datetime:
    hour, minute, second = clock.split(":")
    return datetime(year, MONTHS.index(month) + 1, day, int(hour), int(minute), int(second))  # noqa: DTZ001 — none is named


def _written(at: datetime) -> Stamped:
    seconds = at.replace(tzinfo=at.tzinfo or UTC).timestamp()
    return seconds, at.isoformat()
