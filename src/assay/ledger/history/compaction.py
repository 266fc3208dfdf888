"""Compacts the files of past days into few, since the cost of a query is mostly in the files that it opens.

A compacted file is renamed into place, with the list of its runs beside it, before the others are deleted. So neither a
reader nor a kill in between leads to a run that is seen twice or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from assay.ledger.history import parquet_files
from assay.ledger.history.duckdb_memory import run_with_memory_limit
from assay.ledger.history.parquet_files import (
    COMPACTED_PREFIX,
    DAY_PREFIX,
    HISTORY_TABLES,
    OUTCOMES_TABLE,
    ROW_GROUP_ROWS,
    RUNS_TABLE,
    ParquetFile,
    hold_write_lock,
    move_into_place,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MAX_FILE_ROWS = 500_000
"""Rows of a compacted file at most. A file with half as many is left alone: finding a node in it is as fast."""
MAX_ROWS_AT_ONCE = 1_000_000
"""About so many rows are compacted at a time, in a few seconds; the rest after the next run."""
COMPACTION_WINDOW = timedelta(days=7)
"""Older days are left alone, even when a run is added to one."""
_ORDER = "node, subject, check_, run"


def compact_days(home: Path) -> None:
    """Compact the files of each day before the newest. Raises OSError and duckdb.Error; then all files stay."""
    days = parquet_files.list_day_folders(home, OUTCOMES_TABLE)
    if not days:
        return
    newest = _date(days[-1])
    past = [
        (table, day)
        for table in HISTORY_TABLES
        for day in parquet_files.list_day_folders(home, table, newest - COMPACTION_WINDOW)
        if _date(day) < newest
    ]
    divided = [(table, day) for table, day in past if len(list(day.glob("*.parquet"))) > 1]
    if divided:
        with hold_write_lock(home) as scratch:
            run_with_memory_limit(scratch, lambda database: _compact_tables(database, divided, scratch))


def _compact_tables(database: DuckDBPyConnection, divided: list[tuple[str, Path]], scratch: Path) -> None:
    rows_left = MAX_ROWS_AT_ONCE
    for table, day in divided:
        rows_left -= _compact_day(database, table, day, scratch, rows_left)


def _compact_day(database: DuckDBPyConnection, table: str, day: Path, scratch: Path, max_rows: int) -> int:
    """Compact a day's files until `max_rows` rows are written; return how many were."""
    _delete(parquet_files.list_superseded_files(day))
    written = 0
    for files, count in _group_files(database, parquet_files.list_parquet_files(day)):
        if written >= max_rows:
            break
        written += count
        compacted = scratch / f"{COMPACTED_PREFIX}{uuid4().hex[:12]}.parquet"
        rows = database.read_parquet([str(file.path) for file in files], hive_partitioning=False)
        rows.order("run" if table == RUNS_TABLE else _ORDER).write_parquet(
            str(compacted), compression="zstd", row_group_size=ROW_GROUP_ROWS
        )
        run_list = compacted.with_suffix(".runs")
        run_list.write_text("".join(f"{run}\n" for run in sorted(run for file in files for run in file.runs)))
        for new in (run_list, compacted):
            move_into_place(new, day / new.name)
        _delete(file.path for file in files)
    return written


def _group_files(database: DuckDBPyConnection, files: list[ParquetFile]) -> Iterator[tuple[list[ParquetFile], int]]:
    """Yield groups of files to merge, in order of their runs, each with its number of rows. A group has two or more."""
    group, rows = list[ParquetFile](), 0
    for file in sorted(files, key=lambda file: min(file.runs)):
        file_rows = _count_rows(database, file.path)
        if file_rows > MAX_FILE_ROWS // 2:
            continue
        if rows + file_rows > MAX_FILE_ROWS:
            yield group, rows
            group, rows = [], 0
        group, rows = [*group, file], rows + file_rows
    if len(group) > 1:
        yield group, rows


def _count_rows(database: DuckDBPyConnection, path: Path) -> int:
    (row,) = database.execute("SELECT num_rows FROM parquet_file_metadata($file)", {"file": str(path)}).fetchall()
    return int(row[0])


def _delete(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink()
        path.with_suffix(".runs").unlink(missing_ok=True)


def _date(day: Path) -> date:
    return date.fromisoformat(day.name.removeprefix(DAY_PREFIX))
