"""What the answer about a day depends on: the day's files, and who held which place. Equal keys: the same answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from itertools import accumulate
from operator import xor
from typing import TYPE_CHECKING

from assay.decide.trends.compared_days import HORIZON_DAYS, OWN_FROM

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_HOLDER = """
hash(place, segment, alike, serial, rack, position, pdu, switch, batch, sku, firmware, driver)
"""
_DRAWN = "hash(place, alike)"
_STEPS = """
SELECT day, bit_xor(digest) FROM (
  SELECT first_day AS day, {digest} AS digest FROM {table} WHERE first_day <= last_day
  UNION ALL
  SELECT last_day + 1, {digest} FROM {table} WHERE first_day <= last_day
) GROUP BY day ORDER BY day
"""
"""The digests of all that holds on a day, combined by XOR, change where a holder begins or ends."""


def read_history_keys(database: DuckDBPyConnection) -> dict[int, str]:
    """Return for each day with measurements what tells its files from others."""
    return dict(database.execute("SELECT day, key FROM history_days").fetchall())


def list_history_files(database: DuckDBPyConnection) -> list[str]:
    """Return the files of the fleet's history, by the tables of `open_fleet_tables`."""
    return [row[0] for row in database.execute("SELECT path FROM history_files").fetchall()]


def make_middle_keys(database: DuckDBPyConnection, history: Mapping[int, str], days: Iterable[int]) -> dict[int, str]:
    """Return what the middles of days depend on; the table `drawn` is there."""
    drawn = _digest_by_day(database, "drawn", _DRAWN, days)
    return {day: digest(history.get(day), one) for day, one in drawn.items()}


def make_week_keys(
    database: DuckDBPyConnection,
    history: Mapping[int, str],
    middles: Mapping[int, str],
    weeks: Iterable[int],
    more: str,
) -> dict[int, str]:
    """Return what the changes as of past days depend on. `more`: what else there is."""
    anchors = [*weeks]
    windows = {anchor: range(anchor - OWN_FROM + 1, anchor + 2) for anchor in anchors}
    holders = _digest_by_day(database, "intervals", _HOLDER, {day for days in windows.values() for day in days})
    return {
        anchor: digest(more, [(history.get(day), middles.get(day), holders[day]) for day in days])
        for anchor, days in windows.items()
    }


def make_later_keys(
    database: DuckDBPyConnection, history: Mapping[int, str], weeks: Mapping[int, str], today: int
) -> dict[tuple[int, int], str]:
    """Return what each of the 30 days after a past day depends on. `weeks`: the keys of the past days."""
    pairs = [(anchor, day) for anchor in weeks for day in range(anchor + 1, min(anchor + HORIZON_DAYS + 1, today))]
    holders = _digest_by_day(database, "intervals", _HOLDER, {day for _, day in pairs})
    return {(anchor, day): digest(weeks[anchor], history.get(day), holders[day]) for anchor, day in pairs}


def digest(*parts: object) -> str:
    """Return a short text that stands for plain data."""
    return sha256(repr(parts).encode()).hexdigest()


def _digest_by_day(database: DuckDBPyConnection, table: str, one: str, days: Iterable[int]) -> dict[int, int]:
    """Return for each day the digest of the rows of a table whose time includes it."""
    steps = database.execute(_STEPS.format(table=table, digest=one)).fetchall()
    sums = [*accumulate((step for _, step in steps), xor, initial=0)]
    wanted, found, at = sorted({*days}), dict[int, int](), 0
    for day in wanted:
        while at < len(steps) and steps[at][0] <= day:
            at += 1
        found[day] = sums[at]
    return found
