"""Which days of a part are compared, and how its days are counted: since 1970."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, timedelta

RECENT_DAYS, MONTHLY_DAYS = 7, 14
OWN_FROM, OWN_TO = 60, 21
LONG_FROM, LONG_TO = 260, 75
"""A part is compared with its own days of two months, and of most of a year."""
LEAST_RECENT, LEAST_OWN = 4, 7
"""Days with values that a part needs in each window."""
RATE_DAYS = 14
"""The rate is of two windows of the recent length, so many days apart."""
HORIZON_DAYS = 30
"""A warning is right if a limit is crossed, or the part fails, within so many days."""
LOOK_BACK_WEEKS = 12
HISTORY_DAYS = LONG_FROM + MONTHLY_DAYS
LAST_WEEK, WEEKDAY = 7, 4
"""The newest past day is at least so many days ago. All are Mondays: what they say stays the same for a week."""
DAY_0 = date(1970, 1, 1)
DAY_S = 86_400


def list_weeks(today: int, first_day: int) -> list[int]:
    """Return the days of past weeks that are judged again, the newest first, as far as the values reach.

    They are those that teach what is named today, and what was named on the walked days.
    """
    newest = today - LAST_WEEK
    newest -= (newest - WEEKDAY) % 7
    mondays = (newest - 7 * week for week in range(2 * LOOK_BACK_WEEKS + 1))
    return [day for day in mondays if day - first_day >= OWN_FROM]


def list_walked_days(weeks: Sequence[int]) -> Sequence[int]:
    """Return every second one of the last weeks: on these, the rule is asked as if nothing later were known."""
    return weeks[: LOOK_BACK_WEEKS + 1 : 2]


def list_compared_days(day: int) -> list[int]:
    """Return the days that are read of a large fleet to judge a day: some of its own days before, then the last ones.

    The days that are left out cost a third of the reading, and a median is hardly less sure without them.
    """
    long = [other for other in range(day - LONG_FROM, day - LONG_TO + 1) if other % 12 == 0]
    own = [other for other in range(day - OWN_FROM, day - OWN_TO + 1) if other % 2 == 0]
    return [*long, *own, *range(day - RATE_DAYS - RECENT_DAYS + 1, day + 1)]


def make_dates(days: Iterable[int]) -> list[date]:
    """Return days since 1970 as dates: files of other dates are not even opened."""
    return [DAY_0 + timedelta(days=day) for day in days]


def quote_text(text: str) -> str:
    """Return a text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"
