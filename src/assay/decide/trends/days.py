"""Which days of a series are compared, and how queries over days run. Days count since 1970."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


RECENT_DAYS = 7
OWN_FROM = 60
OWN_TO = 21
LEAST_RECENT, LEAST_OWN = 4, 7
"""Days with values that a series needs in each window."""
DAYS_SEEN = 3
"""The last days are looked at as of a day and of the two days before."""
OWN_DAYS = (OWN_FROM - OWN_TO + 1) // 2
"""Of a series' own days the even ones are read: half of the cost, and their median is hardly less sure. They are the
same for all past weeks, which so share most of them."""
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


def list_weeks(today: int, first_day: int) -> list[int]:
    """Return the days of past weeks on which the rule is asked again, the newest first, as far as the values reach."""
    newest = today - LAST_WEEK
    newest -= (newest - WEEKDAY) % 7
    mondays = (newest - 7 * week for week in range(LOOK_BACK_WEEKS))
    return [day for day in mondays if day - first_day >= OWN_FROM]


DAY_0 = date(1970, 1, 1)
_NAMED_VALUE = re.compile(r"\$([a-z_]+)")
_MACROS = """
CREATE OR REPLACE TEMP MACRO of_day(value) AS
  CASE WHEN count(*) > 2 THEN (sum(value) - max(value) - min(value)) / (count(*) - 2) ELSE sum(value) / count(*) END;
CREATE OR REPLACE TEMP MACRO nearest(low, high, own) AS
  CASE WHEN abs(high - own) < abs(low - own) THEN high ELSE low END;
CREATE OR REPLACE TEMP MACRO side_of(at_least, at_most) AS
  (CASE WHEN (at_least IS NULL) = (at_most IS NULL) THEN 0 WHEN at_least IS NULL THEN 1 ELSE -1 END)::TINYINT;
CREATE OR REPLACE TEMP MACRO readable(value, scale) AS
  CASE WHEN scale IS NULL THEN value ELSE scale * (exp(value) - 1) END
"""
"""`of_day`: the mean without the largest and the smallest value. `nearest`: of the two middle values of an even number
the one nearer to `own`, so that half of the days, which may be wild, is not enough. `readable`: of what is compared of
a counter, its growth in a day."""


def define_macros(database: DuckDBPyConnection) -> None:
    """Define the functions that the queries share."""
    database.execute(_MACROS)


def run(database: DuckDBPyConnection, query: str, values: dict[str, object]) -> None:
    """Run a query with those of the values that it names."""
    database.execute(query, {name: values[name] for name in _NAMED_VALUE.findall(query)})


def make_dates(days: Iterable[int]) -> list[date]:
    """Return days since 1970 as dates: files of other dates are not even opened."""
    return [DAY_0 + timedelta(days=day) for day in days]


def quote_text(text: str) -> str:
    """Return a text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"
