"""The forms in which logs write the time.

A log that names no zone is read as it stands, and its times are written without one. RFC 3164 names no year: the year
is the one in which the log was last written, or an earlier one where the day would be later than that.
"""

from __future__ import annotations

import functools
from datetime import UTC, datetime, timedelta

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
EPOCH_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3), (1e8, 1.0))
"""From this number on, seconds since 1970 are written in so many parts of a second."""
_EAST = {"WEST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "MSK": 3, "HKT": 8, "JST": 9, "KST": 9, "AEST": 10}
_WEST = {"EDT": -4, "EST": -5, "CDT": -5, "MDT": -6, "MST": -7, "PDT": -7, "PST": -8}
ZONE_HOURS = {**_EAST, **_WEST, "AEDT": 11, "NZST": 12, "NZDT": 13}
"""Names of zones that mean one offset only. A log with another name is read without a zone."""
ParsedStamp = tuple[float, str]
"""Seconds on the log's clock, and the time as text: ISO 8601, or `boot+12.5s`."""


def parse_seconds_since_boot(text: str, _written_at: datetime) -> ParsedStamp:
    """Parse `1234.567890`, seconds since the boot."""
    return float(text), f"boot+{text.strip()}s"


def parse_microseconds_since_boot(text: str, _written_at: datetime) -> ParsedStamp:
    """Parse `1234567890`, the form in /dev/kmsg."""
    seconds = int(text) / 1e6
    return seconds, f"boot+{seconds:.6f}s"


def parse_ctime(text: str, _written_at: datetime) -> ParsedStamp:
    """Parse `Sun Feb 23 16:24:18 2025`, the form of dmesg -T."""
    _, month, day, clock, year = text.split()
    return make_stamp(_at(int(year), month, int(day), clock))


def parse_syslog_time(text: str, written_at: datetime) -> ParsedStamp:
    """Parse `Nov 21 18:00:00`, the form of RFC 3164 and of journalctl by default, also with a fraction."""
    month, day, clock = text.split()
    for year in range(written_at.year + 1, written_at.year - 9, -1):
        try:
            at = _at(year, month, int(day), clock)
        except ValueError:
            continue  # 29 February
        if at <= written_at.replace(tzinfo=None) + timedelta(days=1):
            return make_stamp(at)
    raise ValueError(f"no such day: {text}")


@functools.lru_cache(maxsize=4096)
def parse_iso_time(text: str, _written_at: datetime | None = None) -> ParsedStamp:
    """Parse `2026-11-21T18:00:00.123456+00:00` (RFC 5424), also with a comma or with a zone without a colon."""
    return make_stamp(datetime.fromisoformat(text.replace(",", ".").replace(" UTC", "Z").replace(" GMT", "Z")))


def format_zone(name: str) -> str:
    """Return the offset of a zone as `+01:00`, "" for a name that means none or several."""
    hours = ZONE_HOURS.get(name)
    return "" if hours is None else f"{hours:+03}:00"


def parse_epoch(text: str) -> ParsedStamp:
    """Parse seconds, or milli-, micro- or nanoseconds, since 1970. Raises ValueError, OverflowError, OSError."""
    number = float(text)
    parts = next((parts for least, parts in EPOCH_UNITS if number >= least), 0)
    if not parts:
        raise ValueError(f"no time since 1970: {text}")
    whole, _, fraction = text.partition(".")
    micros = int(f"{whole}{fraction:0<6.6}") if fraction else int(whole) * 1_000_000 // int(parts)
    return make_stamp(datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros))


def make_stamp(at: datetime) -> ParsedStamp:
    """Return a time as a stamp; without a zone, it counts as UTC and is written without one."""
    return at.replace(tzinfo=at.tzinfo or UTC).timestamp(), at.isoformat()


@functools.lru_cache(maxsize=4096)
def _at(year: int, month: str, day: int, clock: str) -> datetime:
    return datetime.fromisoformat(f"{year:04}-{MONTHS.index(month) + 1:02}-{day:02}T{clock}")
