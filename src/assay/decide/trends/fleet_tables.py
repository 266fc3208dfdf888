"""The fleet's own measurements, holders and failures: its history and ledger as the tables of `measurement_tables`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from assay.decide.trends.day_queries import DAY_0
from assay.decide.trends.fleet_holders import fill_holders, insert_rows
from assay.ledger.history.damaged_files import name_damaged_files
from assay.ledger.history.duckdb_memory import connect_duckdb
from assay.ledger.history.parquet_files import DAY_PREFIX, MEASUREMENTS_TABLE, list_day_folders, list_parquet_files
from assay.ledger.store import Ledger
from assay.model.entries.fault_entries import FaultEntry
from assay.model.errors import AssayError
from assay.model.faults.fault_record import FaultRecord
from assay.model.outcome import read_part
from assay.model.timestamps import parse_time

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

HISTORY_DAYS = 126
"""What the oldest of the past weeks needs, that set the threshold."""
NAMED_DAYS = 7
"""The last days tell which measurements several checks take."""
TREND_CLASSES = "trend."
_FAILURES = "CREATE TABLE failures (time_s DOUBLE, node VARCHAR, subject VARCHAR, fault VARCHAR)"
_HAS_LATER = """
SELECT coalesce(bool_or(epoch(run_at::TIMESTAMP) > $as_of), false)
FROM (SELECT DISTINCT run_at FROM read_parquet($files))
"""
_HISTORY_DAYS = "CREATE TABLE history_days AS SELECT unnest($days)::INT AS day, unnest($keys) AS key"
_HISTORY_FILES = "CREATE TABLE history_files AS SELECT unnest($files) AS path"
_SHARED_NAMES = """
SELECT name FROM (SELECT DISTINCT name, check_ FROM read_parquet($files))
GROUP BY name HAVING count(*) > 1 ORDER BY name
"""


class PartFailure(NamedTuple):
    """The first sighting of a fault of a part: its class, and its `ident`. `place` "": the node itself."""

    at: datetime
    node: str
    place: str
    fault: str
    ident: str = ""


@contextmanager
def open_fleet_tables(
    home: Path,
    ledger: Ledger,
    as_of: datetime,
    left_out: Collection[str] = (),
    memory: str = "1GB",
    kept: Path | None = None,
) -> Iterator[DuckDBPyConnection]:
    """Have the tables of `open_tables` for the history in `home` and the ledger, as they were at a moment.

    A subject is the place in its node (`gpu3`, "" for the node), as parts change nodes and nodes change pools. A
    measurement that several checks take has the check in its name. `left_out`: files that are not read. `kept`: the
    file that keeps the holders. Raises DamagedFilesError for files that cannot be read, and AssayError where there is
    no history.
    """
    days = _list_files(home, as_of, left_out)
    if not days:
        what = f"there is no history of measurements of the {HISTORY_DAYS} days before {as_of.date()}"
        raise AssayError(what, where=str(home), fix="run `assay validate`, or say --as-of")
    files = [file for day in days for file in day]
    with name_damaged_files(files), connect_duckdb(threads=1, memory_limit=memory) as database:
        database.execute("SET parquet_metadata_cache = true")  # each block of nodes opens the same files
        database.execute(_HISTORY_FILES, {"files": files})
        _make_measurements(database, days, as_of)
        fill_holders(database, ledger, as_of, kept)
        database.execute(_FAILURES)
        failures = list_failures(ledger, as_of)
        insert_rows(database, "failures", ((one.at.timestamp(), one.node, one.place, one.fault) for one in failures))
        yield database


def list_failures(ledger: Ledger, as_of: datetime) -> list[PartFailure]:
    """Return the faults of hardware, by the time when each was first seen; warnings of trends are none."""
    found: dict[str, PartFailure] = {}
    for entry in ledger.entries(kinds=[FaultEntry.kind]):
        fault = FaultEntry.read(entry)
        seen = parse_time(fault.first_seen or entry.at)
        if fault.fault in found or seen > as_of or not is_hardware_failure(fault):
            continue
        found[fault.fault] = PartFailure(seen, entry.node, read_part(fault.subject), fault.fault_class, fault.fault)
    return sorted(found.values())


def is_hardware_failure(fault: FaultEntry | FaultRecord) -> bool:
    """Whether a fault says that hardware failed."""
    is_bad = fault.blame == "hardware" and fault.severity in ("catastrophic", "degraded")
    return is_bad and not fault.fault_class.startswith(TREND_CLASSES)


def _list_files(home: Path, as_of: datetime, left_out: Collection[str]) -> list[list[str]]:
    """Return the files of each day, oldest first."""
    since = (as_of - timedelta(days=HISTORY_DAYS)).date()
    days = list_day_folders(home, MEASUREMENTS_TABLE, since)
    upto = f"{DAY_PREFIX}{as_of.astimezone(UTC).date()}"
    listed = ([str(file.path) for file in list_parquet_files(day)] for day in days if day.name <= upto)
    read = ([file for file in files if file not in left_out] for files in listed)
    return [files for files in read if files]


def _make_measurements(database: DuckDBPyConnection, days: Sequence[Sequence[str]], as_of: datetime) -> None:
    """Make the view `measurements` of history's files, up to a moment. Only the last day may have later runs."""
    *past, last = days
    rows = _read_days(database, last).filter(f"epoch(run_at::TIMESTAMP) <= {as_of.timestamp()!r}")
    if past:
        rows = _read_days(database, [file for day in past for file in day]).union(rows)
    shared = [row[0] for row in database.execute(_SHARED_NAMES, {"files": list(chain(*days[-NAMED_DAYS:]))}).fetchall()]
    listed = ", ".join("'" + name.replace("'", "''") + "'" for name in shared)
    in_check = f"CASE WHEN name IN ({listed}) THEN name || ' of ' || split_part(check_, '::', 2) ELSE name END"
    name = in_check if shared else "name"
    subject = "CASE WHEN node = '' THEN subject ELSE split_part(subject, '/', 3) END"
    times = "epoch(run_at::TIMESTAMP) AS time_s, day - DATE '1970-01-01' AS day"
    keys = f"hash(node, {subject}, unit, {name}) AS series, hash(node, subject, unit, {name}) AS raw"
    rows.project(
        f"{times}, day AS date, node, {subject} AS subject, {name} AS name, value, unit, at_least, at_most, {keys}"
    ).create_view("measurements")
    later = database.execute(_HAS_LATER, {"files": last, "as_of": as_of.timestamp()}).fetchall()[0][0]
    _describe_days(database, days, keys, as_of.isoformat() if later else "")


def _describe_days(database: DuckDBPyConnection, days: Sequence[Sequence[str]], keys: str, as_of: str) -> None:
    """Make `history_days`: what tells the measurements of a day from others; `as_of` counts for the last day."""
    described = [(Path(files[0]).parent.name, repr((keys, [*map(_describe_file, files)]))) for files in days]
    described[-1] = described[-1][0], described[-1][1] + as_of
    counted = [(date.fromisoformat(name.removeprefix(DAY_PREFIX)) - DAY_0).days for name, _ in described]
    database.execute(_HISTORY_DAYS, {"days": counted, "keys": [key for _, key in described]})


def _describe_file(path: str) -> tuple[str, int, int]:
    """Return what tells a file from another: its name, size and time."""
    stat = Path(path).stat()
    return Path(path).name, stat.st_size, stat.st_mtime_ns


def _read_days(database: DuckDBPyConnection, files: Sequence[str]) -> DuckDBPyRelation:
    numbers = ", ".join(f"{column}::DOUBLE AS {column}" for column in ("value", "at_least", "at_most"))
    columns = f"run_at, node, subject, check_, name, unit, {numbers}, day"
    return database.read_parquet(list(files), hive_partitioning=True).project(columns)
