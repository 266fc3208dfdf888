"""The three tables that trends are found in, from Parquet files: measurements, holders of parts, failures.

Times may be of any type of Parquet; they count as UTC. Rows after the moment of asking are never read.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from assay.ledger.history.parquet_files import connect_duckdb
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

TEXT = "VARCHAR"
NUMBER = "DOUBLE"
TIME = "TIME"
MEASUREMENTS = {
    "time": TIME,
    "node": TEXT,
    "subject": TEXT,
    "name": TEXT,
    "value": NUMBER,
    "unit": TEXT,
    "at_least": NUMBER,
    "at_most": NUMBER,
}
HOLDERS = {
    "node": TEXT,
    "subject": TEXT,
    "serial": TEXT,
    "sku": TEXT,
    "firmware": TEXT,
    "rack": TEXT,
    "position": TEXT,
    "since": TIME,
    "until": TIME,
}
OPTIONAL_HOLDERS = {"kind": TEXT, "pdu": TEXT, "switch": TEXT, "batch": TEXT, "driver": TEXT}
"""Columns that a file of holders may have too."""
FAILURES = {"time": TIME, "node": TEXT, "subject": TEXT, "fault": TEXT}
DAY = "try_cast(floor(time_s / 86400) AS INT) AS day, DATE '1970-01-01' + day AS date"
NUMBERS = ("DOUBLE", "FLOAT", "DECIMAL", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT",
           "UINTEGER", "UBIGINT")  # fmt: skip
_NULLS = """
SELECT path_in_schema, sum(coalesce(stats_null_count, 1)) FROM parquet_metadata($path) GROUP BY path_in_schema
"""


class TrendFiles(NamedTuple):
    """The files; what gets worse needs measurements. Without holders, a part is its place, and all parts are peers."""

    measurements: Path | None = None
    holders: Path | None = None
    failures: Path | None = None


def open_tables(files: TrendFiles, as_of: datetime, memory: str = "1GB") -> DuckDBPyConnection:
    """Return a database with the views `measurements`, `holders` and `failures`. Raises AssayError for a wrong file.

    Times are seconds since 1970, in the columns `time_s`, `since_s` and `until_s`. `day` counts days since then, `date`
    is that day.
    """
    database = connect_duckdb(threads=1, memory_limit=memory)
    for name, path, columns, optional in (
        ("measurements", files.measurements, MEASUREMENTS, {}),
        ("holders", files.holders, HOLDERS, OPTIONAL_HOLDERS),
        ("failures", files.failures, FAILURES, {}),
    ):
        if path is None:
            rows = _make_empty(database, columns | optional)
        else:
            rows = _read_rows(database, path, columns, optional, as_of.timestamp())
        rows.project(f"*, {DAY}" if name == "measurements" else "*").create_view(name)
    database.execute("CREATE VIEW history_days AS SELECT DISTINCT day FROM measurements WHERE day IS NOT NULL")
    return database


def _read_rows(
    database: DuckDBPyConnection, path: Path, columns: dict[str, str], optional: dict[str, str], as_of_s: float
) -> DuckDBPyRelation:
    """Return the rows of a file up to a moment; an end that comes after it is none yet."""
    rows = _read_file(database, path)
    types = {column: str(kind) for column, kind in zip(rows.columns, rows.types, strict=True)}
    known = columns | {column: kind for column, kind in optional.items() if column in types}
    _check_columns(path, types, known)
    # To look for nulls in each row costs half of the reading: these columns are never null.
    counts = database.execute(_NULLS, {"path": str(path)}).fetchall()
    whole = {column for column, nulls in counts if nulls == 0 and types.get(column) == TEXT}
    shown = [_cast(column, kind, whole) for column, kind in known.items()]
    shown += [f"'' AS {column}" for column in optional if column not in types]
    first, *ends = (column for column, kind in columns.items() if kind == TIME)
    until = [f"CASE WHEN {end}_s <= {as_of_s!r} THEN {end}_s END AS {end}_s" for end in ends]
    past = rows.filter(f"epoch({first}) <= {as_of_s!r}").project(", ".join(shown))
    return past.project(f"* REPLACE ({', '.join(until)})") if until else past


def _read_file(database: DuckDBPyConnection, path: Path) -> DuckDBPyRelation:
    import duckdb

    try:
        return database.read_parquet(str(path))
    except duckdb.Error as error:
        fix = "give a Parquet file, or a pattern of such files"
        raise AssayError(str(error).splitlines()[0], where=str(path), fix=fix) from None


def _check_columns(path: Path, types: dict[str, str], columns: dict[str, str]) -> None:
    for column, kind in columns.items():
        fix = f"its columns are {', '.join(columns)}"
        if column not in types:
            raise AssayError(f"the column {column} is missing", where=str(path), fix=fix)
        declared = types[column]
        allowed = {TEXT: ("VARCHAR",), NUMBER: NUMBERS, TIME: ("TIMESTAMP",)}[kind]
        if not declared.startswith(allowed) and declared != '"NULL"':
            raise AssayError(f"the column {column} is {declared}, and not {allowed[0]}", where=str(path), fix=fix)


def _cast(column: str, kind: str, whole: Collection[str]) -> str:
    if kind == TIME:
        return f"epoch({column}::TIMESTAMP) AS {column}_s"
    if column in whole:
        return column
    return f"coalesce({column}::VARCHAR, '') AS {column}" if kind == TEXT else f"{column}::DOUBLE AS {column}"


def _make_empty(database: DuckDBPyConnection, columns: dict[str, str]) -> DuckDBPyRelation:
    zero = {TEXT: "''", NUMBER: "0.0", TIME: "0.0"}
    names = {column: f"{column}_s" if kind == TIME else column for column, kind in columns.items()}
    shown = (f"{zero[kind]} AS {names[column]}" for column, kind in columns.items())
    return database.sql("SELECT 1").project(", ".join(shown)).filter("false")
