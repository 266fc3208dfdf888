"""The files of history, `TABLE/day=2026-11-21/RUN.parquet`, and the databases of DuckDB that write and read them.

Every table is a Parquet data set that any tool can read. A file is written elsewhere and renamed when it is complete; a
run counts once every table has it. A compacted file, `all-NAME.parquet`, lists its runs in `all-NAME.runs`; a file
whose runs another file holds is not read. A damaged file is named and left out, so that it hides no others. A database
is in memory and bounded; what does not fit is tried again with more memory.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from assay.ledger.file_locks import hold_file_lock
from assay.ledger.runs.reader import StoredRun
from assay.model.errors import AssayError
from assay.model.outcome import VERDICTS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


OUTCOMES_TABLE = "outcomes"
MEASUREMENTS_TABLE = "measurements"
ARTEFACTS_TABLE = "artefacts"
RUNS_TABLE = "runs"
HISTORY_TABLES = (RUNS_TABLE, ARTEFACTS_TABLE, MEASUREMENTS_TABLE, OUTCOMES_TABLE)
DAY_PREFIX, COMPACTED_PREFIX = "day=", "all-"
SCRATCH_FOLDER, LOCK_FILE = ".making", ".lock"
ROWS_AT_ONCE = 10_000
ROW_GROUP_ROWS = 61_440
"""Fewer rows make every footer longer, more make every query read more; measured by bench."""
WRITE_MEMORY_LIMITS = ("100MB", "1GB")
"""Memory for writing, tried in turn. A million outcomes fit into the first; with a long reason each, the second."""
WRITE_THREADS = 1
"""A second thread would only cost memory."""
MAX_TRIES = 3
"""Attempts of a question; files that were compacted in the meantime are listed again."""
FIX = "delete it: the next run writes it again from reports/runs, if the run is still there"


class ParquetFile(NamedTuple):
    """A file of a table, and the runs that it holds."""

    path: Path
    runs: frozenset[str]


def history_folder(reports: Path) -> Path:
    """Return the folder of a fleet's history in its reports folder."""
    return reports / "history"


def day_folder(home: Path, table: str, at: str) -> Path:
    """Return the folder of the day (UTC) of `at` (ISO 8601)."""
    return home / table / f"{DAY_PREFIX}{datetime.fromisoformat(at).astimezone(UTC).date()}"


def list_day_folders(home: Path, table: str, since: date = date.min) -> list[Path]:
    """Return the folders of a table's days from `since` on, oldest first."""
    folder = home / table
    if not folder.is_dir():
        return []
    names = sorted(entry.name for entry in os.scandir(folder) if entry.name.startswith(DAY_PREFIX))
    return [folder / name for name in names if name.removeprefix(DAY_PREFIX) >= since.isoformat()]


def list_parquet_files(day: Path) -> list[ParquetFile]:
    """Return the files to read for a day's runs, the largest first; files that add no run are left out."""
    files, runs = [], set[str]()
    complete = map(_read_file_runs, _list_complete_files(day))
    for file in sorted(complete, key=lambda file: (-len(file.runs), file.path.name)):
        if not file.runs <= runs:
            files.append(file)
            runs |= file.runs
    return files


def list_superseded_files(day: Path) -> list[Path]:
    """Return the files whose runs another file holds: a kill during compaction leaves such files."""
    read = {file.path for file in list_parquet_files(day)}
    return [path for path in _list_complete_files(day) if path not in read]


def list_runs_of_day(day: Path) -> set[str]:
    """Return the ids of the runs that a day holds."""
    return {run for path in _list_complete_files(day) for run in _read_file_runs(path).runs}


def list_runs_of_table(home: Path, table: str) -> set[str]:
    """Return the ids of the runs that a table holds."""
    return {run for day in list_day_folders(home, table) for run in list_runs_of_day(day)}


@contextmanager
def hold_write_lock(home: Path) -> Iterator[Path]:
    """Be the only writer of the history in `home`; yield an empty scratch folder for new files."""
    with hold_file_lock(home / LOCK_FILE):
        scratch = home / SCRATCH_FOLDER
        shutil.rmtree(scratch, ignore_errors=True)  # of a process that was killed
        scratch.mkdir()
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def move_into_place(scratch_file: Path, path: Path) -> None:
    """Rename a complete file to its place, safe from a power cut."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with scratch_file.open("rb") as file:
        os.fsync(file.fileno())
    scratch_file.replace(path)


def _list_complete_files(day: Path) -> list[Path]:
    if not day.is_dir():
        return []
    return [day / entry.name for entry in os.scandir(day) if entry.name.endswith(".parquet")]


def _read_file_runs(path: Path) -> ParquetFile:
    if not path.name.startswith(COMPACTED_PREFIX):
        return ParquetFile(path, frozenset([path.stem]))
    return ParquetFile(path, frozenset(path.with_suffix(".runs").read_text().split()))


_BY_NODE = "FROM (SELECT id FROM subject ORDER BY node, name) s CROSS JOIN {} o ON o.subject = s.id"
"""Rows in the order of nodes; CROSS JOIN keeps SQLite from choosing another join order."""

_LOADED_TABLES = {
    "check_": (
        "id INTEGER, name TEXT, fault TEXT, phases TEXT, active BOOLEAN",
        "SELECT id, name, fault, phases, active FROM check_",
    ),
    "subject": ("id INTEGER, name TEXT, node TEXT", "SELECT id, name, node FROM subject"),
    "issue": ("id INTEGER, text TEXT", "SELECT id, text FROM text WHERE id IN (SELECT DISTINCT known FROM outcome)"),
    "document": ("id INTEGER, digest TEXT, seen_at TEXT", "SELECT id, digest, at FROM document"),
    "gauge": (
        "id INTEGER, name TEXT, unit TEXT, at_least DOUBLE, at_most DOUBLE, source TEXT",
        "SELECT id, name, unit, at_least, at_most, source FROM gauge",
    ),
    "outcome": (
        """subject INTEGER, check_ INTEGER, verdict UTINYINT, reason TEXT, document INTEGER, micros BIGINT,
        known INTEGER, observed BOOLEAN""",
        "SELECT o.subject, o.check_, verdict, r.text, document, micros, known, observed "
        + _BY_NODE.format("outcome")
        + " LEFT JOIN text r ON r.id = o.reason",
    ),
    "measurement": (
        "subject INTEGER, check_ INTEGER, n INTEGER, gauge INTEGER, value DOUBLE, document INTEGER",
        "SELECT o.subject, o.check_, n, gauge, value, document "
        + _BY_NODE.format("measurement")
        + " CROSS JOIN outcome w ON w.subject = o.subject AND w.check_ = o.check_",
    ),
    "artefact": (
        "subject INTEGER, check_ INTEGER, name TEXT, digest TEXT, bytes BIGINT",
        "SELECT o.subject, o.check_, o.name, digest, bytes " + _BY_NODE.format("artefact"),
    ),
}
"""Each table: its columns in DuckDB, and the query that reads its rows from the run's file (DuckDB reads no SQLite).

Reasons are part of the outcomes: where everything fails, they are too many for a join in little memory.
"""

_WRITTEN_TABLES = {
    RUNS_TABLE: """
        SELECT $run AS run, $at AS run_at, $phases::VARCHAR[] AS phases, $nodes::VARCHAR[] AS nodes,
          $spec_commit AS spec_commit, $dirty AS dirty, $suite_hash AS suite_hash, $who AS who, $about AS about
        """,
    ARTEFACTS_TABLE: """
        SELECT $run AS run, $at AS run_at, s.node, s.name AS subject, c.name AS check_, o.name, o.digest, o.bytes
        FROM artefact o JOIN subject s ON s.id = o.subject JOIN check_ c ON c.id = o.check_
        """,
    MEASUREMENTS_TABLE: """
        SELECT $run AS run, $at AS run_at, s.node, s.name AS subject, c.name AS check_, o.n, g.name, o.value, g.unit,
          g.at_least, g.at_most, g.source, coalesce(d.digest, '') AS evidence
        FROM measurement o JOIN subject s ON s.id = o.subject JOIN check_ c ON c.id = o.check_
          JOIN gauge g ON g.id = o.gauge LEFT JOIN document d ON d.id = o.document
        """,
    OUTCOMES_TABLE: """
        SELECT $run AS run, $at AS run_at, split_part(s.name, '/', 1) AS pool, s.node, s.name AS subject,
          c.name AS check_, list_extract($verdicts::VARCHAR[], o.verdict + 1) AS verdict,
          coalesce(o.reason, '') AS reason, c.fault, c.phases, c.active,
          coalesce(d.digest, '') AS evidence, coalesce(d.seen_at, '') AS evidence_at, o.micros,
          coalesce(k.text, '') AS known, coalesce(o.observed, false) AS observed
        FROM outcome o JOIN subject s ON s.id = o.subject JOIN check_ c ON c.id = o.check_
          LEFT JOIN document d ON d.id = o.document
          LEFT JOIN issue k ON k.id = o.known
        """,
}
"""Each table of history as a query over the loaded tables. `pool` is the first part of a subject, `fabric` of fabrics.

The phases of an outcome are JSON text: reading a list costs as much as five columns of text.
"""


class RunExport:
    """A run's rows in DuckDB, in the order of nodes, from which each table of history is written."""

    def __init__(self, stored: StoredRun, database: DuckDBPyConnection) -> None:
        self._database = database
        self._stored = stored
        for table, (columns, query) in _LOADED_TABLES.items():
            database.execute(f"CREATE TABLE {table} ({columns})")
            appender, rows = database.appender(table), stored.connection.execute(query)
            while batch := rows.fetchmany(ROWS_AT_ONCE):
                appender.append_rows(batch)
            appender.flush()

    def write_table(self, table: str, file: Path) -> None:
        """Write one of history's tables to a file."""
        query = _WRITTEN_TABLES[table]
        parameters = {name: value for name, value in self._run_values().items() if f"${name}" in query}
        rows = self._database.sql(query, params=parameters)
        rows.write_parquet(str(file), compression="zstd", row_group_size=ROW_GROUP_ROWS)

    def _run_values(self) -> dict[str, Any]:
        run = self._stored.run
        about = {name: value for name, value in self._stored.about.items() if name != "run"}
        plain = {**asdict(run), "run": run.id, "phases": list(run.phases), "nodes": list(run.nodes)}
        return {**plain, "about": json.dumps(about, ensure_ascii=False), "verdicts": list(VERDICTS)}


def connect_duckdb(**limits: str | int) -> DuckDBPyConnection:
    """Return a new database in memory, with limits as settings of DuckDB. It never downloads extensions."""
    import duckdb

    own: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    return duckdb.connect(config=own | limits)


def run_with_memory_limit(scratch: Path, work: Callable[[DuckDBPyConnection], None]) -> None:
    """Call `work` with a database that spills to `scratch`; where memory does not suffice, again with more."""
    import duckdb

    for memory in WRITE_MEMORY_LIMITS:
        with connect_duckdb(threads=WRITE_THREADS, memory_limit=memory, temp_directory=str(scratch)) as database:
            try:
                work(database)
            except duckdb.OutOfMemoryException:
                if memory == WRITE_MEMORY_LIMITS[-1]:
                    raise
            else:
                return


Answer = TypeVar("Answer")


class DamagedFilesError(AssayError):
    """These files of history cannot be read; none: files have gone since they were listed."""

    def __init__(self, files: Sequence[str]) -> None:
        problem = "this file of history cannot be read" if files else "files of history have gone while they were read"
        super().__init__(problem, where=", ".join(files), fix=FIX if files else "try again")
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
            damaged, tries = {*error.files} - left_out, tries - 1
            if not damaged and not tries:
                raise
        for file in sorted(damaged):
            skipped(DamagedFilesError([file]))
        left_out |= damaged


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
