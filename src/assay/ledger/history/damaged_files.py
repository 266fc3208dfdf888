"""Damaged files of history: they are named and left out, so that one hides no others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from assay.ledger.history.duckdb_memory import connect_duckdb
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Answer = TypeVar("Answer")
MAX_TRIES = 3
"""Attempts of a question; files that were compacted in the meantime are listed again."""
FIX = "delete it: the next run writes it again from reports/runs, if the run is still there"


class DamagedFilesError(AssayError):
    """These files of history cannot be read; none: files have gone since they were listed."""

    def __init__(self, files: Sequence[str]) -> None:
        what = "this file of history cannot be read" if files else "files of history have gone while they were read"
        super().__init__(what, where=", ".join(files), fix=FIX if files else "try again")
        self.files = files


def read_without_damaged(
    read: Callable[[Collection[str]], Answer], skipped: Callable[[AssayError], None] = lambda _: None
) -> Answer:
    """Return what `read` returns, which gets the files that it leaves out. `skipped` receives the error of each."""
    left_out, tries = set[str](), MAX_TRIES
    while True:
        try:
            return read(frozenset(left_out))
        except DamagedFilesError as error:
            found, tries = {*error.files} - left_out, tries - 1
            if not found and not tries:
                raise
        for file in sorted(found):
            skipped(DamagedFilesError([file]))
        left_out |= found


@contextmanager
def name_damaged_files(files: Collection[str]) -> Iterator[None]:
    """Raise DamagedFilesError in place of an error of DuckDB, if some of these files cannot be read, or have gone."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        there = [file for file in files if Path(file).exists()]
        with connect_duckdb(temp_directory="") as database:
            damaged = [file for file in there if not is_readable(database, file)]
        if damaged or len(there) < len(files):
            raise DamagedFilesError(damaged) from error
        raise


def is_readable(database: DuckDBPyConnection, file: str) -> bool:
    """Return whether every value of a file can be decoded."""
    import duckdb

    try:
        database.execute("SELECT max(hash(COLUMNS(*))) FROM read_parquet($file)", {"file": file}).fetchall()
    except duckdb.Error:
        return False
    return True
