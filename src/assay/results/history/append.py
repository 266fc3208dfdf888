"""Keeps runs: what a complete run's file holds becomes Parquet, once. What a kill prevented is done the next time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from assay.model.errors import AssayError
from assay.model.outcome import SuiteRun
from assay.results.history import parquet_files
from assay.results.history.compaction import compact_days
from assay.results.history.parquet_files import (
    HISTORY_TABLES,
    RunExport,
    day_folder,
    history_folder,
    hold_write_lock,
    move_into_place,
    run_with_memory_limit,
)
from assay.results.store.reader import StoredRun
from assay.results.store.run_lookup import list_runs
from assay.results.store.run_manifest import ENDED_KEY, ENDED_WHOLE

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MAX_RUNS_AT_ONCE, MAX_RUNS_TRIED = 10, 50
"""So many runs are caught up with at a time, newest first: nobody waits long for what an earlier run left undone."""
DAY_LENGTH = len("20261121")
"""With that a run's id begins."""
_RETRY_FIX = "nothing is lost; the next run tries again"


def append_run(run: Path, home: Path) -> None:
    """Write the run's file `run` into the history `history_folder`, unless that holds it.

    Raises Trouble for a run that is not complete, cannot be read, or could not be written.
    """
    import duckdb

    try:
        with StoredRun.open(run) as stored:
            if ENDED_KEY not in stored.about:
                raise AssayError(
                    "the run is not complete", where=str(run), fix="go on with it: assay validate --resume"
                )
            if not _has_run(home, stored.run):
                _append(stored, home)
    except (OSError, sqlite3.Error, duckdb.Error) as error:
        raise AssayError(f"the run could not be kept in history: {error}", where=str(run), fix=_RETRY_FIX) from error


def append_missing_runs(reports: Path) -> list[AssayError]:
    """Keep the complete runs below `reports` that history lacks, and make many small files of days past into few.

    Returns what stood in the way of any; nothing of that costs a run, and the next time it is tried again.
    """
    every = list_runs(reports)
    if not every:
        return []
    try:
        kept = _list_appended_runs(history_folder(reports))
    except OSError as error:
        return [AssayError(f"history cannot be written: {error}", where=str(history_folder(reports)), fix=_RETRY_FIX)]
    left = (run for run in reversed(every) if run.parent.name not in kept and _is_final(run, every[-1]))
    return [*_append_some(islice(left, MAX_RUNS_TRIED), history_folder(reports)), *_compact(history_folder(reports))]


def _append_some(left: Iterable[Path], home: Path) -> Iterator[AssayError]:
    """Keep runs until enough are kept; yield what stood in the way of others."""
    kept = 0
    for run in left:
        try:
            append_run(run, home)
            kept += 1
        except AssayError as trouble:
            yield trouble
        if kept == MAX_RUNS_AT_ONCE:
            return


def _list_appended_runs(home: Path) -> set[str]:
    """Return the runs that history holds, while nobody changes it."""
    with hold_write_lock(home):
        return set.intersection(*(parquet_files.list_runs_of_table(home, table) for table in HISTORY_TABLES))


def _compact(home: Path) -> list[AssayError]:
    import duckdb

    try:
        compact_days(home)
    except (OSError, duckdb.Error) as error:
        return [AssayError(f"files of history could not be taken together: {error}", where=str(home), fix=_RETRY_FIX)]
    return []


def _is_final(run: Path, last: Path) -> bool:
    """Return whether a run is whole, or in part and of a day that has passed: until then somebody may go on with it.

    One that cannot be opened is for `append_run` to tell.
    """
    try:
        with StoredRun.open(run) as stored:
            ended = stored.about.get(ENDED_KEY)
    except (AssayError, sqlite3.Error):
        return True
    return ended == ENDED_WHOLE or (ended is not None and run.parent.name[:DAY_LENGTH] < last.parent.name[:DAY_LENGTH])


def _has_run(home: Path, run: SuiteRun) -> bool:
    return all(run.id in parquet_files.list_runs_of_day(day_folder(home, table, run.at)) for table in HISTORY_TABLES)


def _append(stored: StoredRun, home: Path) -> None:
    with hold_write_lock(home) as making:
        if not _has_run(home, stored.run):  # nobody was faster
            run_with_memory_limit(making, lambda database: _write(stored, database, making, home))


def _write(stored: StoredRun, database: DuckDBPyConnection, making: Path, home: Path) -> None:
    rows = RunExport(stored, database)
    for table in HISTORY_TABLES:
        made = making / f"{table}.parquet"
        rows.write_table(table, made)
        move_into_place(made, day_folder(home, table, stored.run.at) / f"{stored.run.id}.parquet")
