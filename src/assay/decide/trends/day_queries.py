"""How the queries over days are run, and the functions that they share."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

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
