"""The tables in which limits are judged: measurements of some days, the failures of the nodes, and their absences."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from assay.ledger.interned_texts import split_batches
from assay.model.errors import AssayError
from assay.results.history.damaged_files import name_damaged_files
from assay.results.history.duckdb_memory import connect_duckdb
from assay.results.history.parquet_files import (
    MEASUREMENTS_TABLE,
    OUTCOMES_TABLE,
    list_day_folders,
    list_parquet_files,
)
from assay.trends.missed.service_failures import ServiceLosses

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

DAY_S = 86_400
HORIZON_DAYS = 30
"""What fails within so many days of an alarm was foreseen; a part without a failure for so long was healthy."""
MEANING_DAYS = 30
"""The outcomes of the last days tell which fault each check means."""
ROWS_AT_ONCE = 10_000
_TABLES = """
CREATE TABLE node_specs (node VARCHAR, spec VARCHAR);
CREATE TABLE failures (failure INTEGER, node VARCHAR, place VARCHAR, fault VARCHAR, day INTEGER);
CREATE TABLE absences (node VARCHAR, first_day INTEGER, last_day INTEGER);
CREATE TABLE ill_days (node VARCHAR, day INTEGER);
"""
_READINGS = """
CREATE VIEW readings AS
SELECT m.*, coalesce(s.spec, split_part(subject, '/', 1)) AS spec FROM measured m LEFT JOIN node_specs s USING (node)
"""


@dataclass(frozen=True, slots=True)
class LimitQuestion:
    """The history in `home` of the last `days` (UTC) up to `as_of`; the spec of each node, and what nodes lost then.

    Measurements of racks, fabrics and unknown nodes count for the first part of their subject in place of a spec.
    `checks`: only of these; none: of all.
    """

    home: Path
    as_of: datetime
    days: int
    specs: Mapping[str, str]
    losses: ServiceLosses
    checks: frozenset[str] = frozenset()

    @property
    def today(self) -> int:
        """The day of asking, counted since 1970."""
        return count_days(self.as_of)


def count_days(at: datetime) -> int:
    """Return the day (UTC) of a moment, counted since 1970."""
    return int(at.timestamp() // DAY_S)


def list_measurement_files(question: LimitQuestion, left_out: Collection[str] = ()) -> list[str]:
    """Return the files of measurements of the question's days."""
    return _list_files(question, MEASUREMENTS_TABLE, question.days, left_out)


@contextmanager
def open_limit_tables(
    question: LimitQuestion, left_out: Collection[str] = (), memory: str = "1GB"
) -> Iterator[DuckDBPyConnection]:
    """Have a database with the view `readings` and the tables that judge it. `left_out`: files that are not read.

    Raises DamagedFilesError for those that cannot be, and AssayError without a history.
    """
    files = list_measurement_files(question, left_out)
    if not files:
        what = f"there is no history of measurements of the {question.days} days before {question.as_of.date()}"
        raise AssayError(what, where=str(question.home), fix="run `assay validate`, or say --as-of")
    outcomes = _list_files(question, OUTCOMES_TABLE, MEANING_DAYS, left_out)
    with name_damaged_files([*files, *outcomes]), connect_duckdb(threads=1, memory_limit=memory) as database:
        database.execute("SET parquet_metadata_cache = true")  # each block opens every file again
        database.execute(_TABLES)
        rows = {"node_specs": question.specs.items(), **_list_losses(question.losses)}
        for table, some in rows.items():
            _insert(database, table, some)
        _make_readings(database, files, question)
        _make_meanings(database, outcomes)
        yield database


def _list_losses(losses: ServiceLosses) -> dict[str, Iterable[tuple[object, ...]]]:
    failed = losses.failures
    return {
        "failures": [(n, one.node, one.place, one.fault, count_days(one.seen_at)) for n, one in enumerate(failed)],
        "absences": [(one.node, count_days(one.left_at), count_days(one.until)) for one in losses.absences],
        "ill_days": {
            (one.node, day)
            for one in failed
            for day in range(count_days(one.seen_at) - HORIZON_DAYS, count_days(one.until) + 1)
        },
    }


def _make_readings(database: DuckDBPyConnection, files: list[str], question: LimitQuestion) -> None:
    """Make the view `readings`. Only of the last day are times read: to parse each costs more than all else."""
    as_of, today = question.as_of.timestamp(), question.as_of.date()
    rows = database.read_parquet(files, hive_partitioning=True).filter(
        "isfinite(value) AND coalesce(at_least, at_most) IS NOT NULL "
        f"AND (day::DATE < DATE '{today}' OR epoch(run_at::TIMESTAMP) <= {as_of!r})"
    )
    if question.checks:
        database.execute("CREATE TABLE asked (check_ VARCHAR)")
        _insert(database, "asked", [(check,) for check in question.checks])
        rows = rows.filter("check_ IN (SELECT check_ FROM asked)")
    numbers = ", ".join(f"{name}::DOUBLE AS {name}" for name in ("value", "at_least", "at_most"))
    day = "(day::DATE - DATE '1970-01-01')::INTEGER AS day"
    rows.project(f"{day}, run_at, node, subject, check_, name, unit, source, {numbers}").create_view("measured")
    database.execute(_READINGS)


def _make_meanings(database: DuckDBPyConnection, files: list[str]) -> None:
    """Make the table `meanings`: the fault that each check means, by files of outcomes."""
    database.execute("CREATE TABLE meanings (check_ VARCHAR, fault VARCHAR)")
    if files:
        asked = "INSERT INTO meanings SELECT check_, max(fault) FROM read_parquet($files) GROUP BY check_"
        database.execute(asked, {"files": files})


def _list_files(question: LimitQuestion, table: str, days: int, left_out: Collection[str]) -> list[str]:
    since, last = (question.as_of - timedelta(days=days - 1)).date(), f"day={question.as_of.date()}"
    folders = [day for day in list_day_folders(question.home, table, since) if day.name <= last]
    listed = (str(file.path) for day in folders for file in list_parquet_files(day))
    return [file for file in listed if file not in left_out]


def _insert(database: DuckDBPyConnection, table: str, rows: Iterable[tuple[object, ...]]) -> None:
    appender = database.appender(table)
    for some in split_batches(list(rows), ROWS_AT_ONCE):
        appender.append_rows(some)
    appender.flush()
