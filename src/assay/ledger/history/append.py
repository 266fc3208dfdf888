"""Appends ended runs to history, each once: what a kill prevented, the next run does. Compacts the files of past days.

The cost of a query is mostly in the files that it opens. A compacted file is renamed into place, with the list of its
runs beside it, before the others are deleted. So neither a reader nor a kill in between leads to a run that is seen
twice or not at all.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from assay.ledger.history import parquet_files
from assay.ledger.history.parquet_files import (
    COMPACTED_PREFIX,
    DAY_PREFIX,
    HISTORY_TABLES,
    OUTCOMES_TABLE,
    ROW_GROUP_ROWS,
    RUNS_TABLE,
    ParquetFile,
    RunExport,
    day_folder,
    history_folder,
    hold_write_lock,
    move_into_place,
    run_with_memory_limit,
)
from assay.ledger.runs.reader import StoredRun, list_runs
from assay.model.errors import AssayError, require_extra
from assay.model.outcome import SuiteRun

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


MAX_FILE_ROWS = 500_000
"""Rows of a compacted file at most. A file with half as many is left alone: finding a node in it is as fast."""
MAX_ROWS_AT_ONCE = 1_000_000
"""About so many rows are compacted at a time, in a few seconds; the rest after the next run."""
COMPACTION_WINDOW = timedelta(days=7)
"""Older days are left alone, even when a run is added to one."""
_ORDER = "node, subject, check_, run"
MAX_RUNS_AT_ONCE, MAX_RUNS_TRIED = 10, 50
"""Missing runs that are appended, and tried, at a time, newest first, so that a run does not wait long for others."""
DAY_LENGTH = len("20261121")
"""Length of the day at the start of a run's id."""


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

            def compact(database: DuckDBPyConnection) -> None:
                rows_left = MAX_ROWS_AT_ONCE
                for table, day in divided:
                    rows_left -= _compact_day(database, table, day, scratch, rows_left)

            run_with_memory_limit(scratch, compact)


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
        query = "SELECT num_rows::BIGINT FROM parquet_file_metadata($file)"
        ((file_rows,),) = database.execute(query, {"file": str(file.path)}).fetchall()
        if file_rows > MAX_FILE_ROWS // 2:
            continue
        if rows + file_rows > MAX_FILE_ROWS:
            yield group, rows
            group, rows = [], 0
        group, rows = [*group, file], rows + file_rows
    if len(group) > 1:
        yield group, rows


def _delete(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink()
        path.with_suffix(".runs").unlink(missing_ok=True)


def _date(day: Path) -> date:
    return date.fromisoformat(day.name.removeprefix(DAY_PREFIX))


_RETRY_FIX = "nothing is lost; the next run tries again"


def append_run(run: Path, home: Path) -> None:
    """Append the run of the file `run` to the history in `home`, unless that holds it.

    Raises AssayError for a run that has not ended, cannot be read, or cannot be written.
    """
    import duckdb

    try:
        with StoredRun.open_whole(run) as stored:
            if not stored.has_ended:
                raise AssayError("the run has not ended", where=str(run), fix="resume it: assay validate --resume")
            if _has_run(home, stored.run):
                return
            with hold_write_lock(home) as scratch:
                if not _has_run(home, stored.run):  # another process may have been faster
                    run_with_memory_limit(scratch, lambda database: _write(stored, database, scratch, home))
    except (OSError, sqlite3.Error, duckdb.Error) as error:
        raise AssayError(f"the run cannot be added to history: {error}", where=str(run), fix=_RETRY_FIX) from error


def append_missing_runs(reports: Path) -> list[AssayError]:
    """Append the ended runs in `reports` that history lacks, and compact the files of past days.

    Returns the errors of runs that could not be appended; no error costs a run, and the next call tries again.
    """
    runs, home = list_runs(reports), history_folder(reports)
    if not runs:
        return []
    try:
        require_extra("duckdb")
        with hold_write_lock(home):
            tables = [parquet_files.list_runs_of_table(home, table) for table in HISTORY_TABLES]
    except AssayError as error:
        return [AssayError(f"the run is stored, but not in the history of runs: {error.what}", fix=error.fix)]
    except OSError as error:
        return [AssayError(f"history cannot be written: {error}", where=str(home), fix=_RETRY_FIX)]
    appended = set.intersection(*tables)
    left = (run for run in reversed(runs) if run.parent.name not in appended and _is_final(run, runs[-1]))
    return [*_append_some(islice(left, MAX_RUNS_TRIED), home), *_compact(home)]


def _append_some(left: Iterable[Path], home: Path) -> Iterator[AssayError]:
    """Append runs, at most MAX_RUNS_AT_ONCE; yield the errors of the others."""
    appended = 0
    for run in left:
        try:
            append_run(run, home)
            appended += 1
        except AssayError as error:
            yield error
        if appended == MAX_RUNS_AT_ONCE:
            return


def _compact(home: Path) -> list[AssayError]:
    import duckdb

    try:
        compact_days(home)
    except (OSError, duckdb.Error) as error:
        return [AssayError(f"files of history cannot be compacted: {error}", where=str(home), fix=_RETRY_FIX)]
    return []


def _is_final(run: Path, last: Path) -> bool:
    """Return whether a run cannot be resumed any more: it is complete, or it ended in part before the day of `last`.

    A file that cannot be opened counts too, so that `append_run` reports it.
    """
    try:
        with StoredRun.open(run) as stored:
            is_past = run.parent.name[:DAY_LENGTH] < last.parent.name[:DAY_LENGTH]
            return stored.is_complete or (stored.has_ended and is_past)
    except (AssayError, sqlite3.Error):
        return True


def _has_run(home: Path, run: SuiteRun) -> bool:
    return all(run.id in parquet_files.list_runs_of_day(day_folder(home, table, run.at)) for table in HISTORY_TABLES)


def _write(stored: StoredRun, database: DuckDBPyConnection, scratch: Path, home: Path) -> None:
    export = RunExport(stored, database)
    for table in HISTORY_TABLES:
        file = scratch / f"{table}.parquet"
        export.write_table(table, file)
        move_into_place(file, day_folder(home, table, stored.run.at) / f"{stored.run.id}.parquet")
