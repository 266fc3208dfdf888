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
from assay.harness.history.duck import duck
from assay.harness.history.places import DAY, MADE_ONE, OUTCOMES, RUNS, TABLES, File, place, writing
from assay.harness.history.pour import GROUP

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MOST = 2_000_000
"""Rows that a file may have which took others in: sorting them takes seconds, and little memory."""
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
        with writing(home) as making, duck(making) as database:
            for table, day in many:
                _take_together(database, table, day, making)


def _take_together(database: DuckDBPyConnection, table: str, day: Path, making: Path) -> None:
    _delete(places.superseded(day))
    for some in _groups(database, places.files(day)):
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


def _groups(database: DuckDBPyConnection, files: list[File]) -> Iterator[list[File]]:
    """Yield files that become one, more than one at a time, in order of their runs."""
    some, rows = list[File](), 0
    for file in sorted(files, key=lambda file: min(file.runs)):
        has = _rows(database, file.path)
        if some and rows + has > MOST:
            yield from [some] if len(some) > 1 else []
            some, rows = [], 0
        some, rows = [*some, file], rows + has
    if len(some) > 1:
        yield some


def _rows(database: DuckDBPyConnection, path: Path) -> int:
    (count,) = database.execute("SELECT num_rows FROM parquet_file_metadata($file)", {"file": str(path)}).fetchall()
    return int(count[0])


def _delete(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink()
        path.with_suffix(".runs").unlink(missing_ok=True)


def _date(day: Path) -> date:
    return date.fromisoformat(day.name.removeprefix(DAY))
