"""Keeps what the days before today say, in one file of DuckDB, for the next question of the same day.

The file may be deleted. It counts only for the same day, the same files of history and the same holders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from assay.trends.peers import past_days, past_weeks
from assay.trends.peers.raw_counters import RawCounter

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

TABLES = (*past_days.KEPT_TABLES, *past_weeks.KEPT_TABLES)
KEPT_FILE = Path("trends") / "kept.duckdb"
"""Where it is in the reports folder."""
FORM = 2
"""Counts up when the meaning of the tables changes."""
_HOLDERS = """
SELECT count(*), coalesce(bit_xor(hash(place, segment, alike, serial, rack, position, pdu, switch, batch, sku, firmware,
  driver, first_day, least(last_day, $today - 1))), 0)
FROM intervals WHERE first_day < $today
"""


def make_key(database: DuckDBPyConnection, today: int, counters: Sequence[RawCounter] = ()) -> str:
    """Return what the kept tables depend on, as a digest; the tables `intervals` and `history_read` are there."""
    holders = database.execute(_HOLDERS, {"today": today}).fetchall()
    history = database.execute("FROM history_read").fetchall()
    return sha256(repr((FORM, today, holders, history, list(counters))).encode()).hexdigest()


def load_kept(database: DuckDBPyConnection, path: Path, key: str) -> bool:
    """Make the kept tables of the file, and return True; False where there is none for this key."""
    import duckdb

    if not path.exists():
        return False
    try:
        with _attach(database, path, "(READ_ONLY)"):
            if database.execute("SELECT key FROM kept.kept_for").fetchall() != [(key,)]:
                return False
            for table in TABLES:
                database.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS FROM kept.{table}")
    except duckdb.Error:
        return False  # of another version, or damaged: read the history instead
    return True


def save_kept(database: DuckDBPyConnection, path: Path, key: str) -> None:
    """Write the kept tables to the file; one that is already there is replaced when it is whole."""
    import duckdb

    making = path.with_suffix(".making")
    with suppress(OSError, duckdb.Error):  # the answer does not need it
        path.parent.mkdir(parents=True, exist_ok=True)
        making.unlink(missing_ok=True)
        with _attach(database, making):
            for table in TABLES:
                database.execute(f"CREATE TABLE kept.{table} AS FROM {table}")
            database.execute("CREATE TABLE kept.kept_for AS SELECT $key AS key", {"key": key})
        making.replace(path)


@contextmanager
def _attach(database: DuckDBPyConnection, path: Path, options: str = "") -> Iterator[None]:
    quoted = str(path).replace("'", "''")
    database.execute(f"ATTACH '{quoted}' AS kept {options}")
    try:
        yield
    finally:
        database.execute("DETACH kept")
