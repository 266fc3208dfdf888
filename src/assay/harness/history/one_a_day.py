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

from assay.harness.history import places
from assay.harness.history.duck import in_little_memory
from assay.harness.history.places import DAY, MADE_ONE, OUTCOMES, RUNS, TABLES, File, place, writing
from assay.harness.history.pour import GROUP

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MOST = 500_000
"""Rows that a file may have which took others in; one of half as many is left alone: a node is found in it as fast."""
AT_ONCE = 1_000_000
"""About so many rows are taken together at a time, in a few seconds; the rest when the next run has ended."""
BACK = timedelta(days=7)
"""What is older is left as it is, a run that came late included."""
_ORDER = "node, subject, check_, run"


def one_a_day(home: Path) -> None:
    """Take the files of each day together that has a later one. Raises OSError and duckdb.Error; then all stays."""
    kept = places.days(home, OUTCOMES)
    if not kept:
        return
    newest = _date(kept[-1])
    over = [(table, day) for table in TABLES for day in places.days(home, table, newest - BACK) if _date(day) < newest]
    many = [(table, day) for table, day in over if len(list(day.glob("*.parquet"))) > 1]
    if many:
        with writing(home) as making:
            in_little_memory(making, lambda database: _tidy(database, many, making))


def _tidy(database: DuckDBPyConnection, many: list[tuple[str, Path]], making: Path) -> None:
    left = AT_ONCE
    for table, day in many:
        left -= _take_together(database, table, day, making, left)


def _take_together(database: DuckDBPyConnection, table: str, day: Path, making: Path, most: int) -> int:
    """Take a day's files together until `most` rows are; return how many were."""
    _delete(places.superseded(day))
    done = 0
    for some, count in _groups(database, places.files(day)):
        if done >= most:
            break
        done += count
        made = making / f"{MADE_ONE}{uuid4().hex[:12]}.parquet"
        rows = database.read_parquet([str(file.path) for file in some], hive_partitioning=False)
        rows.order("run" if table == RUNS else _ORDER).write_parquet(
            str(made), compression="zstd", row_group_size=GROUP
        )
        listed = made.with_suffix(".runs")
        listed.write_text("".join(f"{run}\n" for run in sorted(run for file in some for run in file.runs)))
        for new in (listed, made):
            place(new, day / new.name)
        _delete(file.path for file in some)
    return done


def _groups(database: DuckDBPyConnection, files: list[File]) -> Iterator[tuple[list[File], int]]:
    """Yield files that become one, more than one at a time, in order of their runs, and how many rows they have."""
    some, rows = list[File](), 0
    for file in sorted(files, key=lambda file: min(file.runs)):
        has = _rows(database, file.path)
        if has > MOST // 2:
            continue
        if rows + has > MOST:
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
    return date.fromisoformat(day.name.removeprefix(DAY))
