"""Appends ended runs to history, each once. Whatever a kill prevented, the next run does."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from assay.ledger.history import parquet_files
from assay.ledger.history.compaction import compact_days
from assay.ledger.history.duckdb_memory import run_with_memory_limit
from assay.ledger.history.parquet_files import (
    HISTORY_TABLES,
    RunExport,
    day_folder,
    history_folder,
    hold_write_lock,
    move_into_place,
)
from assay.ledger.runs.reader import StoredRun
from assay.ledger.runs.run_lookup import list_runs
from assay.model.errors import AssayError, require_extra
from assay.model.outcome import SuiteRun

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MAX_RUNS_AT_ONCE, MAX_RUNS_TRIED = 10, 50
"""Missing runs that are appended, and tried, at a time, newest first, so that a run does not wait long for others."""
DAY_LENGTH = len("20261121")
"""Length of the day at the start of a run's id."""
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
        appended = _list_appended_runs(home)
    except AssayError as error:
        return [AssayError(f"the run is stored, but not in the history of runs: {error.what}", fix=error.fix)]
    except OSError as error:
        return [AssayError(f"history cannot be written: {error}", where=str(home), fix=_RETRY_FIX)]
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


def _list_appended_runs(home: Path) -> set[str]:
    """Return the runs that every table of history holds, while no process writes to it."""
    with hold_write_lock(home):
        return set.intersection(*(parquet_files.list_runs_of_table(home, table) for table in HISTORY_TABLES))


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
