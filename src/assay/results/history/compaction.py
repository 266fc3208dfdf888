"""Makes the many files of a day that is over into few: what a question costs is mostly the files that it opens.

A file that took others in is renamed into place before they are deleted, with the list of its runs beside it, so that
neither a reader nor a kill in between sees a run twice or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from assay.results.history import parquet_files
from assay.results.history.parquet_files import (
    COMPACTED_PREFIX,
    DAY_PREFIX,
    HISTORY_TABLES,
    OUTCOMES_TABLE,
    ROW_GROUP_ROWS,
    RUNS_TABLE,
    ParquetFile,
    hold_write_lock,
    move_into_place,
    run_with_memory_limit,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MAX_FILE_ROWS = 500_000
"""Rows that a file may have which took others in; one of half as many is left alone: a node is found in it as fast."""
MAX_ROWS_AT_ONCE = 1_000_000
"""About so many rows are taken together at a time, in a few seconds; the rest when the next run has ended."""
COMPACTION_WINDOW = timedelta(days=7)
"""What is older is left as it is, a run that came late included."""
_ORDER = "node, subject, check_, run"


def compact_days(home: Path) -> None:
    """Take the files of each day together that has a later one. Raises OSError and duckdb.Error; then all stays."""
    kept = parquet_files.list_day_folders(home, OUTCOMES_TABLE)
    if not kept:
        return
    newest = _date(kept[-1])
    over = [
        (table, day)
        for table in HISTORY_TABLES
        for day in parquet_files.list_day_folders(home, table, newest - COMPACTION_WINDOW)
        if _date(day) < newest
    ]
    many = [(table, day) for table, day in over if len(list(day.glob("*.parquet"))) > 1]
    if many:
        with hold_write_lock(home) as making:
            run_with_memory_limit(making, lambda database: _compact_tables(database, many, making))


def _compact_tables(database: DuckDBPyConnection, many: list[tuple[str, Path]], making: Path) -> None:
    left = MAX_ROWS_AT_ONCE
    for table, day in many:
        left -= _compact_day(database, table, day, making, left)


def _compact_day(database: DuckDBPyConnection, table: str, day: Path, making: Path, most: int) -> int:
    """Take a day's files together until `most` rows are; return how many were."""
    _delete(parquet_files.list_superseded_files(day))
    done = 0
    for some, count in _group_files(database, parquet_files.list_parquet_files(day)):
        if done >= most:
            break
        done += count
        made = making / f"{COMPACTED_PREFIX}{uuid4().hex[:12]}.parquet"
        rows = database.read_parquet([str(file.path) for file in some], hive_partitioning=False)
        rows.order("run" if table == RUNS_TABLE else _ORDER).write_parquet(
            str(made), compression="zstd", row_group_size=ROW_GROUP_ROWS
        )
        listed = made.with_suffix(".runs")
        listed.write_text("".join(f"{run}\n" for run in sorted(run for file in some for run in file.runs)))
        for new in (listed, made):
            move_into_place(new, day / new.name)
        _delete(file.path for file in some)
    return done


def _group_files(database: DuckDBPyConnection, files: list[ParquetFile]) -> Iterator[tuple[list[ParquetFile], int]]:
    """Yield files that become one, more than one at a time, in order of their runs, and how many rows they have."""
    some, rows = list[ParquetFile](), 0
    for file in sorted(files, key=lambda file: min(file.runs)):
        has = _rows(database, file.path)
        if has > MAX_FILE_ROWS // 2:
            continue
        if rows + has > MAX_FILE_ROWS:
            yield some, rows
            some, rows = [], 0
        some, rows = [*some, file], rows + has
    if len(some) > 1:
        yield some, rows


def _rows(database: DuckDBPyConnection, path: Path) -> int:
    (row,) = database.execute("SELECT num_rows FROM parquet_file_metadata($file)", {"file": str(path)}).fetchall()
    return int(row[0])


def _delete(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink()
        path.with_suffix(".runs").unlink(missing_ok=True)


def _date(day: Path) -> date:
    return date.fromisoformat(day.name.removeprefix(DAY_PREFIX))
