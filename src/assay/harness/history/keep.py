"""Keeps runs: what a complete run's file holds becomes Parquet, once. What a kill prevented is done the next time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from assay.harness.history import places
from assay.harness.history.duck import in_little_memory
from assay.harness.history.one_a_day import one_a_day
from assay.harness.history.places import TABLES, folder, home, place, writing
from assay.harness.history.pour import Poured
from assay.harness.order import ENDED, WHOLE
from assay.harness.store.read import Stored
from assay.harness.store.runs import all_runs
from assay.model.errors import Trouble
from assay.model.outcome import Run

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

AT_ONCE, MOST_TRIED = 10, 50
"""So many runs are caught up with at a time, newest first: nobody waits long for what an earlier run left undone."""
DAY = len("20261121")
"""With that a run's id begins."""
_AGAIN = "nothing is lost; the next run tries again"


def keep(run: Path, home: Path) -> None:
    """Write the run's file `run` into the history `home`, unless that holds it.

    Raises Trouble for a run that is not complete, cannot be read, or could not be written.
    """
    import duckdb

    try:
        with Stored.open(run) as stored:
            if ENDED not in stored.about:
                raise Trouble("the run is not complete", where=str(run), fix="go on with it: assay validate --resume")
            if not _holds(home, stored.run):
                _keep(stored, home)
    except (OSError, sqlite3.Error, duckdb.Error) as error:
        raise Trouble(f"the run could not be kept in history: {error}", where=str(run), fix=_AGAIN) from error


def catch_up(reports: Path) -> list[Trouble]:
    """Keep the complete runs below `reports` that history lacks, and make many small files of days past into few.

    Returns what stood in the way of any; nothing of that costs a run, and the next time it is tried again.
    """
    every = all_runs(reports)
    if not every:
        return []
    try:
        kept = _kept(home(reports))
    except OSError as error:
        return [Trouble(f"history cannot be written: {error}", where=str(home(reports)), fix=_AGAIN)]
    left = (run for run in reversed(every) if run.parent.name not in kept and _is_over(run, every[-1]))
    return [*_keep_some(islice(left, MOST_TRIED), home(reports)), *_tidied(home(reports))]


def _keep_some(left: Iterable[Path], home: Path) -> Iterator[Trouble]:
    """Keep runs until enough are kept; yield what stood in the way of others."""
    kept = 0
    for run in left:
        try:
            keep(run, home)
            kept += 1
        except Trouble as trouble:
            yield trouble
        if kept == AT_ONCE:
            return


def _kept(home: Path) -> set[str]:
    """Return the runs that history holds, while nobody changes it."""
    with writing(home):
        return set.intersection(*(places.all_runs(home, table) for table in TABLES))


def _tidied(home: Path) -> list[Trouble]:
    import duckdb

    try:
        one_a_day(home)
    except (OSError, duckdb.Error) as error:
        return [Trouble(f"files of history could not be taken together: {error}", where=str(home), fix=_AGAIN)]
    return []


def _is_over(run: Path, last: Path) -> bool:
    """Return whether a run is whole, or in part and of a day that has passed: until then somebody may go on with it.

    One that cannot be opened is for `keep` to tell.
    """
    try:
        with Stored.open(run) as stored:
            ended = stored.about.get(ENDED)
    except (Trouble, sqlite3.Error):
        return True
    return ended == WHOLE or (ended is not None and run.parent.name[:DAY] < last.parent.name[:DAY])


def _holds(home: Path, run: Run) -> bool:
    return all(run.id in places.runs(folder(home, table, run.at)) for table in TABLES)


def _keep(stored: Stored, home: Path) -> None:
    with writing(home) as making:
        if not _holds(home, stored.run):  # nobody was faster
            in_little_memory(making, lambda database: _write(stored, database, making, home))


def _write(stored: Stored, database: DuckDBPyConnection, making: Path, home: Path) -> None:
    rows = Poured(stored, database)
    for table in TABLES:
        made = making / f"{table}.parquet"
        rows.write(table, made)
        place(made, folder(home, table, stored.run.at) / f"{stored.run.id}.parquet")
