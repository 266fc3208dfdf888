"""Which days of a series are compared: its last days with its own days before, today and on days of past weeks.

Days count since 1970.
"""

from __future__ import annotations

from collections.abc import Iterator

RECENT_DAYS, OWN_FROM, OWN_TO = 7, 60, 21
LEAST_RECENT, LEAST_OWN = 4, 14
"""Days with values that a series needs in each window."""
DAYS_SEEN = 3
"""The last days are looked at as of a day and of the two days before."""
OWN_AGO = [*range(OWN_FROM - 1, OWN_TO - 1, -1)]
"""How many days ago the days were with which the last ones are compared, the longest ago first."""
RECENT_AGO = [[*range(seen + RECENT_DAYS - 1, seen - 1, -1)] for seen in range(DAYS_SEEN)]
"""The same of the last days, as of the day itself and of the days before it."""
COMPARED_AGO = [*OWN_AGO, *range(RECENT_AGO[-1][0], -1, -1)]
HORIZON_DAYS = 30
"""A warning is right if a limit is crossed, or the part fails, within so many days."""
LOOK_BACK_WEEKS = 8
LAST_WEEK, WEEKDAY = 7, 4
"""The newest past day is at least so many days ago. All are Mondays: what they say stays the same for a week."""


def list_compared_days(day: int) -> list[int]:
    """Return all days that are read to judge a day."""
    return [day - ago for ago in COMPARED_AGO]


def list_weeks(today: int, first_day: int) -> list[int]:
    """Return the days of past weeks on which the rule is asked again, the newest first, as far as the values reach."""
    return [day for day in _list_mondays(today) if day - first_day >= OWN_FROM]


def _list_mondays(today: int) -> Iterator[int]:
    newest = today - LAST_WEEK
    newest -= (newest - WEEKDAY) % 7
    return (newest - 7 * week for week in range(LOOK_BACK_WEEKS))
