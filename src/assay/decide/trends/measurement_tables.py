"""The three tables that trends are found in, from files of any tool: measurements, holders of parts, failures.

Parquet, CSV, JSON lines, or of measurements the answer of a range query of Prometheus. Times count as UTC. Rows after
the moment of asking are never read. Rows that cannot be right are refused, each with its line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
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
OPTIONAL_MEASUREMENTS = {"worse": TEXT}
"""`up` or `down`: which side is worse of a measurement without limits."""
SHOWN_LINES, MEMORY = 20, "1GB"
_MEASURED_REASONS = """
CASE WHEN node = '' THEN 'it has no node' WHEN name = '' THEN 'it has no name'
  WHEN time_s IS NULL THEN 'its time is none' WHEN value IS NULL AND shown_value <> '' THEN 'its value is no number'
  WHEN at_least > at_most THEN 'at_least is above at_most'
  WHEN worse NOT IN ('', 'up', 'down') THEN 'worse is neither up nor down'
  WHEN unit <> usual THEN 'its unit is ' || unit || ', and that of ' || name || ' is ' || usual
  WHEN unit IN ('C', '°C', 'degC') AND value NOT BETWEEN -60 AND 150 AND isfinite(value)
    THEN value::VARCHAR || ' ' || unit || ' is no temperature of a part; which unit has it?' END
"""
_HELD_REASONS = """
CASE WHEN node = '' THEN 'it has no node' WHEN since_s IS NULL THEN 'its since is none'
  WHEN until_s < since_s THEN 'it ends before it begins'
  WHEN since_s < max(coalesce(until_s, 'inf'::DOUBLE)) OVER (
    PARTITION BY node, subject ORDER BY since_s, line ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    THEN 'another part was there at that time' END
"""
_FAILED_REASONS = "CASE WHEN node = '' THEN 'it has no node' WHEN time_s IS NULL THEN 'its time is none' END"


_UNKNOWN = """
SELECT DISTINCT name FROM read_measurements WHERE unit IS NULL AND name NOT IN (SELECT name FROM declared)
ORDER BY name LIMIT 3
"""
_DECLARED = """
WITH usual_units AS (SELECT name, mode(unit) AS mode_unit FROM read_measurements GROUP BY name)
SELECT r.* REPLACE (
    coalesce(r.unit, d.unit, '') AS unit, coalesce(nullif(r.worse, ''), d.worse, '') AS worse,
    coalesce(at_least, CASE coalesce(nullif(r.worse, ''), d.worse) WHEN 'down' THEN '-inf'::DOUBLE END) AS at_least,
    coalesce(at_most, CASE coalesce(nullif(r.worse, ''), d.worse) WHEN 'up' THEN 'inf'::DOUBLE END) AS at_most
  ), coalesce(d.unit, mode_unit, '') AS usual
FROM read_measurements r JOIN usual_units u ON r.name = u.name LEFT JOIN declared d ON r.name = d.name
"""


class TrendFiles(NamedTuple):
    """The files; what gets worse needs measurements. Without holders, a part is its place, and all parts are peers.

    `declared`: the unit of measurements, and `up` or `down` for what is worse, as in `{"gpu_temp": "C:up"}`.
    """

    measurements: Path | None = None
    holders: Path | None = None
    failures: Path | None = None
    declared: Mapping[str, str] = {}


@dataclass(slots=True)
class RefusedRows:
    """How many rows of files were refused, and the first of them with their lines."""

    count: int = 0
    lines: list[str] = field(default_factory=list)


def open_tables(files: TrendFiles, as_of: datetime, refused: RefusedRows | None = None) -> DuckDBPyConnection:
    """Return a database with the views `measurements`, `holders` and `failures`. Raises AssayError for a wrong file.

    `refused` receives the rows that cannot be right.

    Times are seconds since 1970, in the columns `time_s`, `since_s` and `until_s`. `day` counts days since then, `date`
    is that day.
    """
    database, refused = connect_duckdb(threads=1, memory_limit=MEMORY), refused or RefusedRows()
    for name, path, columns, optional, reasons in (
        ("measurements", files.measurements, MEASUREMENTS, OPTIONAL_MEASUREMENTS, _MEASURED_REASONS),
        ("holders", files.holders, HOLDERS, OPTIONAL_HOLDERS, _HELD_REASONS),
        ("failures", files.failures, FAILURES, {}, _FAILED_REASONS),
    ):
        if path is None:
            empty = (f"{_EMPTY[kind]} AS {_name(column, kind)}" for column, kind in (columns | optional).items())
            rows = database.sql("SELECT 1").project(", ".join(empty)).filter("false")
        else:
            rows = _read_rows(database, path, columns, optional, files.declared, as_of.timestamp())
            rows = _refuse_rows(rows, path, reasons, refused)
            if name == "holders":
                rows = rows.project(
                    f"* REPLACE (CASE WHEN until_s <= {as_of.timestamp()!r} THEN until_s END AS until_s)"
                )
        rows.project(f"*, {DAY}" if name == "measurements" else "*").create_view(name)
    database.execute("CREATE VIEW history_days AS SELECT DISTINCT day FROM measurements WHERE day IS NOT NULL")
    return database


def _read_rows(
    database: DuckDBPyConnection,
    path: Path,
    columns: dict[str, str],
    optional: dict[str, str],
    declared: Mapping[str, str],
    as_of_s: float,
) -> DuckDBPyRelation:
    """Return the rows of a file up to a moment, each with its line."""
    rows, is_typed = _read_file(database, path)
    types = {column: str(kind) for column, kind in zip(rows.columns, rows.types, strict=True)}
    known = columns | optional
    missing = {*optional, "unit", "at_least", "at_most"} if declared or not is_typed else {*optional}
    _check_columns(path, types, {column: kind for column, kind in known.items() if column not in missing}, is_typed)
    shown = ["line"]
    for column, kind in known.items():
        empty = {"unit": "NULL::VARCHAR"}.get(column, _EMPTY[kind])
        shown.append(_cast(column, kind) if column in types else f"{empty} AS {_name(column, kind)}")
    first = next(column for column, kind in columns.items() if kind == TIME)
    if "value" in columns:
        shown.append("coalesce(value::VARCHAR, '') AS shown_value")
    past = rows.project(", ".join(shown)).filter(f"coalesce({first}_s <= {as_of_s!r}, true)")
    return _declare(database, path, past, declared) if "value" in columns else past


def _refuse_rows(rows: DuckDBPyRelation, path: Path, reasons: str, refused: RefusedRows) -> DuckDBPyRelation:
    """Return the rows that may be right."""
    judged = rows.project(f"*, {reasons} AS reason")
    wrong = judged.filter("reason IS NOT NULL")
    if count := wrong.count("*").fetchall()[0][0]:
        first = wrong.order("line").limit(SHOWN_LINES).project("line, reason").fetchall()
        refused.count += count
        refused.lines += [f"{path}:{line}: {reason}" for line, reason in first]
    others = [column for column in ("line", "shown_value", "worse", "usual") if column in rows.columns]
    return judged.filter("reason IS NULL").project(f"* EXCLUDE (reason, {', '.join(others)})")


def _declare(
    database: DuckDBPyConnection, path: Path, rows: DuckDBPyRelation, declared: Mapping[str, str]
) -> DuckDBPyRelation:
    """Return the rows with the unit and the worse side that are declared, and the usual unit of each measurement."""
    units = {name: text.partition(":") for name, text in declared.items()}
    pairs = [(name, unit, worse) for name, (unit, _, worse) in units.items()]
    database.execute("CREATE OR REPLACE TEMP TABLE declared (name VARCHAR, unit VARCHAR, worse VARCHAR)")
    database.executemany("INSERT INTO declared VALUES (?, ?, ?)", pairs or [("", "", "")])
    rows.create_view("read_measurements", replace=True)
    unknown = database.execute(_UNKNOWN).fetchall()
    if names := [row[0] for row in unknown]:
        fix = f"say --declare '{names[0]}=C:up', with its unit, and which side is worse"
        raise AssayError(f"nothing tells the unit of {', '.join(names)}", where=str(path), fix=fix)
    return database.sql(_DECLARED)


def _read_file(database: DuckDBPyConnection, path: Path) -> tuple[DuckDBPyRelation, bool]:
    """Return the rows of a file with their lines, and whether its columns have types."""
    import duckdb

    try:
        match path.suffix.lower():
            case ".csv" | ".tsv":
                rows = database.read_csv(str(path), all_varchar=True, header=True)
                return rows.project("*, row_number() OVER () + 1 AS line"), False
            case ".jsonl" | ".ndjson":
                rows = database.read_json(str(path), format="newline_delimited")
                texts = ", ".join(f'"{column}"::VARCHAR AS "{column}"' for column in rows.columns)
                return rows.project(f"{texts}, row_number() OVER () AS line"), False
            case ".json":
                return _read_range(database, path), False
            case _:
                rows = database.read_parquet(str(path), file_row_number=True)
                return rows.project("* EXCLUDE file_row_number, file_row_number + 1 AS line"), True
    except (duckdb.Error, OSError, ValueError, LookupError, TypeError) as error:
        fix = "give a Parquet file or a pattern of such files, .csv, .jsonl, or the .json of a Prometheus range query"
        raise AssayError((str(error).splitlines() or ["it is empty"])[0], where=str(path), fix=fix) from None


def _read_range(database: DuckDBPyConnection, path: Path) -> DuckDBPyRelation:
    """Return the rows of the answer of a range query of Prometheus."""
    database.execute(
        "CREATE OR REPLACE TABLE ranges (at_s DOUBLE, node VARCHAR, subject VARCHAR, name VARCHAR, value VARCHAR)"
    )
    appender = database.appender("ranges")
    for series in json.loads(path.read_bytes())["data"]["result"]:
        labels = series["metric"]
        node = labels.get("Hostname") or labels.get("node") or labels.get("instance", "").partition(":")[0]
        subject = f"gpu{labels['gpu']}" if "gpu" in labels else labels.get("device", "")
        name = labels.get("__name__", "")
        appender.append_rows([(float(at), node, subject, name, value) for at, value in series["values"]])
    appender.flush()
    return database.sql(
        "SELECT to_timestamp(at_s)::TIMESTAMP::VARCHAR AS time, node, subject, name, value, "
        "row_number() OVER () AS line FROM ranges"
    )


def _check_columns(path: Path, types: dict[str, str], columns: dict[str, str], is_typed: bool) -> None:
    for column, kind in columns.items():
        fix = f"its columns are {', '.join(columns)}"
        if column not in types:
            raise AssayError(f"the column {column} is missing", where=str(path), fix=fix)
        declared = types[column]
        allowed = {TEXT: ("VARCHAR",), NUMBER: NUMBERS, TIME: ("TIMESTAMP",)}[kind]
        if is_typed and not declared.startswith(allowed) and declared != '"NULL"':
            raise AssayError(f"the column {column} is {declared}, and not {allowed[0]}", where=str(path), fix=fix)


_EMPTY = {TEXT: "''", NUMBER: "NULL::DOUBLE", TIME: "NULL::DOUBLE"}


def _name(column: str, kind: str) -> str:
    return f"{column}_s" if kind == TIME else column


def _cast(column: str, kind: str) -> str:
    if kind == TIME:
        return f"epoch(try_cast({column} AS TIMESTAMP)) AS {column}_s"
    return (
        f"coalesce({column}::VARCHAR, '') AS {column}" if kind == TEXT else f"try_cast({column} AS DOUBLE) AS {column}"
    )
