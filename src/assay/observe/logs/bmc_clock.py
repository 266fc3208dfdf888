"""The times of event logs as text: in any order of day, month and year, by a clock of 12 or 24 hours.

ipmitool since 1.8.19 prints them as its user's locale has them. `21.11.2026` is German, `2026年11月21日` Japanese;
`05/06/2026` is American or British, which only the other entries of the log can tell.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import NamedTuple

from assay.observe.logs.time_stamps import MONTHS, ZONE_HOURS

NAMED_MONTH = re.compile(rf"\b({'|'.join(MONTHS)})[a-z]*\b", re.IGNORECASE)
NUMBERS = re.compile(r"\d+")
CLOCK = re.compile(r"(\d{1,2})\D{1,3}(\d{2})(?:\D{1,3}(\d{2})(?:\.\d+)?)?")
AFTERNOON = re.compile(r"p\.?m\b|午後|오후|下午|μμ", re.IGNORECASE)
MORNING = re.compile(r"a\.?m\b|午前|오전|上午|πμ", re.IGNORECASE)
OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)\b")
ZONE = re.compile(r"\b[A-Z]{3,4}\b")
EARLIEST_YEAR = 1970
CENTURY = 2000
PARTS_OF_A_DATE = 3


class LogTime(NamedTuple):
    """When an entry was made: as text, and in seconds since 1970, None where only the day is known."""

    stamp: str
    at: float | None


def is_day_first(days: Sequence[str]) -> bool:
    """Whether the day stands before the month in the dates with slashes of a log. False where nothing tells it.

    A number above 12 tells it, else the order of the entries: a log grows by time.
    """
    pairs = [(int(numbers[0]), int(numbers[1]), int(numbers[2])) for day in days if (numbers := _slashed(day))]
    if any(first > 12 for first, _, _ in pairs) != any(second > 12 for _, second, _ in pairs):
        return any(first > 12 for first, _, _ in pairs)
    by_month = [(year, first, second) for first, second, year in pairs]
    by_day = [(year, second, first) for first, second, year in pairs]
    return by_month != sorted(by_month) and by_day == sorted(by_day)


def parse_time(day: str, clock: str, day_first: bool) -> LogTime | None:
    """Return a time as printed, None where it makes no sense. Without a zone that is known, it has none."""
    found = CLOCK.search(clock)
    try:
        parsed = _parse_date(day, day_first)
        if found is None:
            return LogTime(parsed.isoformat(), None)
        zone = _find_zone(clock[found.end() :])
        at = datetime.combine(parsed, _parse_clock(clock, found), zone or UTC)
    except ValueError:
        return None
    return LogTime(at.replace(tzinfo=zone).isoformat(), at.timestamp())


def _slashed(text: str) -> list[str]:
    numbers = NUMBERS.findall(text)
    return numbers if text.count("/") == PARTS_OF_A_DATE - 1 == len(numbers) - 1 and len(numbers[0]) < 4 else []


def _parse_date(text: str, day_first: bool) -> date:
    """Raises ValueError for what is no date."""
    numbers = [int(number) for number in NUMBERS.findall(text)]
    if named := NAMED_MONTH.search(text):
        first, second = numbers
        year, day = (first, second) if first > 31 else (second, first)
        return date(_full_year(year), MONTHS.index(named[1].capitalize()) + 1, day)
    first, second, third = numbers
    if first > 31:
        return date(_full_year(first), second, third)
    day, month = (first, second) if day_first or "/" not in text else (second, first)
    return date(_full_year(third), month, day)


def _full_year(year: int) -> int:
    year += CENTURY if year < 100 else 0
    if not EARLIEST_YEAR <= year < CENTURY + 100:
        raise ValueError(f"no year of a log: {year}")
    return year


def _parse_clock(clock: str, found: re.Match[str]) -> time:
    """Raises ValueError for what is no time of day. A leap second is the one before it."""
    hour, minute, second = int(found[1]), int(found[2]), int(found[3] or 0)
    is_afternoon, is_morning = AFTERNOON.search(clock), MORNING.search(clock)
    if is_afternoon or is_morning:
        if not 1 <= hour <= 12:
            raise ValueError(f"no hour of 12: {clock}")
        hour = hour % 12 + (12 if is_afternoon else 0)
    return time(hour, minute, 59 if second == 60 else second)


def _find_zone(rest: str) -> timezone | None:
    if found := OFFSET.search(rest):
        span = timedelta(hours=int(found[2]), minutes=int(found[3]))
        return timezone(-span if found[1] == "-" else span) if span < timedelta(hours=15) else None
    named = ZONE.search(rest)
    hours = {**ZONE_HOURS, "UTC": 0, "GMT": 0}.get(named[0]) if named else None
    return None if hours is None else timezone(timedelta(hours=hours))
