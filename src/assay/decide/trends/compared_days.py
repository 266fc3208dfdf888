"""Which days of a series are compared: its last days with its own days before, today and on days of past weeks.

Days count since 1970.
"""

from __future__ import annotations

from collections.abc import Iterator

RECENT_DAYS, OWN_FROM, OWN_TO = 7, 60, 21
LEAST_RECENT, LEAST_OWN = 4, 7
"""Days with values that a series needs in each window."""
DAYS_SEEN = 3
"""The last days are looked at as of a day and of the two days before."""
OWN_DAYS = (OWN_FROM - OWN_TO + 1) // 2
"""Of a series' own days the even ones are read: half of the cost, and their median is hardly less sure. They are the
same for all who ask, so that the next day hardly reads another one."""
OWN = range(OWN_DAYS)
"""The places of a series' own days in `list_compared_days`."""
RECENT = [
    range(OWN_DAYS + DAYS_SEEN - 1 - ago, OWN_DAYS + DAYS_SEEN - 1 - ago + RECENT_DAYS) for ago in range(DAYS_SEEN)
]
"""Those of the last days, as of the day itself and of the days before it."""
COMPARED = range(RECENT[0].stop)
HORIZON_DAYS = 30
"""A warning is right if a limit is crossed, or the part fails, within so many days."""
LOOK_BACK_WEEKS = 8
LAST_WEEK, WEEKDAY = 7, 4
"""The newest past day is at least so many days ago. All are Mondays: what they say stays the same for a week."""


def list_compared_days(day: int) -> list[int]:
    """Return all days that are read to judge a day: its own days before, then the last ones."""
    first = day - OWN_FROM + 2 - day % 2
    return [*range(first, first + 2 * OWN_DAYS, 2), *range(day - RECENT_DAYS - DAYS_SEEN + 2, day + 1)]


def list_kept_days(day: int) -> list[int]:
    """Return the days that are read to judge a day, and those that a later day reads as its own."""
    compared = list_compared_days(day)
    return sorted({*compared, *range(compared[0], day, 2)})


def list_weeks(today: int, first_day: int) -> list[int]:
    """Return the days of past weeks on which the rule is asked again, the newest first, as far as the values reach."""
    return [day for day in _list_mondays(today) if day - first_day >= OWN_FROM]


def _list_mondays(today: int) -> Iterator[int]:
    newest = today - LAST_WEEK
    newest -= (newest - WEEKDAY) % 7
    return (newest - 7 * week for week in range(LOOK_BACK_WEEKS))
