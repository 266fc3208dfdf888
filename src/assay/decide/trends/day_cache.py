"""Keeps what past days say in one file of DuckDB, so that the next question reads only days that are new.

The file is a cache: without it, or if it is damaged, all days are read again. Each day is kept with what it depends on:
its files of history and the holders of its parts. A day for which these have changed is read again.

What the answer about a day depends on: the day's files, and who held which place. Equal keys: the same answer.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from itertools import accumulate
from operator import xor
from pathlib import Path
from typing import TYPE_CHECKING

from assay.decide.trends.days import HORIZON_DAYS, OWN_FROM
from assay.ledger.file_locks import hold_file_lock
from assay.ledger.history.parquet_files import name_damaged_files

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


KEPT_FILE = Path("trends") / "kept.duckdb"
"""Where it is in the reports folder."""
FORM = 6
"""Counts up when the meaning of the tables changes."""
_VALUES_IN_MEMORY = 100_000
"""A fleet with more values on a day is folded into a file, though nobody keeps it."""
_SHAPE = "CREATE TABLE IF NOT EXISTS kept.shape (form INT, bits INT); FROM kept.shape"
_DELETE = "DELETE FROM kept.{name} WHERE NOT list_contains($valid, day)"
_KEYS = "CREATE TABLE IF NOT EXISTS kept.keys (name VARCHAR, day INT, key VARCHAR)"


@contextmanager
def open_kept(database: DuckDBPyConnection, path: Path | None, values: float) -> Iterator[None]:
    """Attach the file as `kept`; without one, what lasts as long as this. `values`: how many a day has.

    Raises AssayError while another process has the file. A file with an error is removed, unless the error is of
    history: then it raises DamagedFilesError.
    """
    import duckdb

    if path is None:
        with _attach_for_once(database, values):
            yield
        return
    with hold_file_lock(path.with_suffix(".lock"), 0):
        try:
            with _attach(database, str(path)), name_damaged_files(list_history_files(database)):
                yield
        except duckdb.Error:
            _remove(path)
            raise


def _remove(path: Path) -> None:
    """Remove the file and its log."""
    for file in (path, path.with_name(f"{path.name}.wal")):
        with suppress(OSError):
            file.unlink(missing_ok=True)


def choose_bits(database: DuckDBPyConnection, wanted: int, least: int) -> int:
    """Return into how many blocks (2^bits) the file splits series: as once chosen, while that is nearly as wanted.

    `least`: fewer would mix the nodes of past weeks with others. What has another form is forgotten.
    """
    shapes = database.execute(_SHAPE).fetchall()
    if len(shapes) == 1:
        form, bits = shapes[0]
        if form == FORM and bits >= least and abs(bits - wanted) <= 1:
            return int(bits)
    for (name,) in database.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = 'kept'").fetchall():
        database.execute(f"DROP TABLE kept.{name}")
    database.execute(_SHAPE)
    database.execute("INSERT INTO kept.shape VALUES ($form, $bits)", {"form": FORM, "bits": max(wanted, least)})
    return max(wanted, least)


def find_missing(database: DuckDBPyConnection, name: str, columns: str, keys: Mapping[int, str]) -> list[int]:
    """Return for which days the table `name` has no rows of these keys. What it has of other keys is deleted."""
    database.execute(_KEYS)
    database.execute(f"CREATE TABLE IF NOT EXISTS kept.{name} ({columns})")
    found = dict(database.execute("SELECT day, key FROM kept.keys WHERE name = $name", {"name": name}).fetchall())
    valid = [day for day, key in found.items() if keys.get(day) == key]
    if len(valid) < len(found):
        asked = {"valid": valid}
        database.execute(_DELETE.format(name=name), asked)
        named = "DELETE FROM kept.keys WHERE name = $name AND NOT list_contains($valid, day)"
        database.execute(named, {**asked, "name": name})
    return sorted(keys.keys() - {*valid})


def note_keys(database: DuckDBPyConnection, name: str, keys: Mapping[int, str]) -> None:
    """Note that the table `name` has the rows of these days."""
    noted = {"name": name, "days": [*keys], "keys": [*keys.values()]}
    database.execute("INSERT INTO kept.keys SELECT $name, unnest($days), unnest($keys)", noted)


@contextmanager
def _attach_for_once(database: DuckDBPyConnection, values: float) -> Iterator[None]:
    if values <= _VALUES_IN_MEMORY:
        with _attach(database, ":memory:"):
            yield
        return
    with tempfile.TemporaryDirectory() as folder, _attach(database, str(Path(folder) / KEPT_FILE.name)):
        yield


@contextmanager
def _attach(database: DuckDBPyConnection, where: str) -> Iterator[None]:
    import duckdb

    quoted = where.replace("'", "''")
    database.execute(f"ATTACH '{quoted}' AS kept")
    try:
        yield
    finally:
        with suppress(duckdb.Error):
            database.execute("DETACH kept")
