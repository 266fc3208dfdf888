"""The fleet's own measurements, holders and failures: its history and ledger as the tables of `measurement_tables`.

Who held which place of the fleet's nodes, as the table `holders`: by the ledger, and a file that keeps it.

The file is a cache. With it, only nodes with new entries are followed, from their first entry on. It counts while the
ledger has the entry up to which it was made, for moments after all entries of then.

The intervals of holders in whole days, and the nodes by which series are drawn.

The day on which a holder begins or ends belongs to nobody: its values may be of the part before, or of a repair.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from assay.decide.state.part_holders import HOLDER_ENTRY_KINDS, PartHolder, list_part_holders
from assay.decide.trends.days import DAY_0
from assay.ledger.history.parquet_files import (
    DAY_PREFIX,
    MEASUREMENTS_TABLE,
    connect_duckdb,
    list_day_folders,
    list_parquet_files,
    name_damaged_files,
)
from assay.ledger.newest.interned_texts import split_batches
from assay.ledger.store import Ledger
from assay.model.entries.assets import SetupSeenEntry
from assay.model.entries.faults import FaultEntry
from assay.model.errors import AssayError
from assay.model.faults.fault_record import FaultRecord
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import read_part
from assay.model.timestamps import format_time, parse_epoch_seconds_cached, parse_time

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation


HOLDERS_FILE = Path("trends") / "holders.parquet"
"""Where it is in the reports folder."""
FORM = "1"
"""Counts up when the meaning of a column changes."""
NODES_AT_ONCE, ROWS_AT_ONCE = 200, 10_000
_HOLDERS = """
CREATE TABLE holders (node VARCHAR, subject VARCHAR, serial VARCHAR, sku VARCHAR, firmware VARCHAR, rack VARCHAR,
  position VARCHAR, since_s DOUBLE, until_s DOUBLE, pdu VARCHAR, switch VARCHAR, batch VARCHAR, driver VARCHAR,
  kind VARCHAR)
"""
_KNOWN = "SELECT decode(key), decode(value) FROM parquet_kv_metadata($file)"
_TAKE = "INSERT INTO holders FROM read_parquet($file)"
_DROP = "DELETE FROM holders WHERE list_contains($nodes, node)"
_WRITE = """
COPY holders TO '{file}' (FORMAT parquet, KV_METADATA {{form: '{form}', head: '{head}', hash: '{hash}', 'at': '{at}'}})
"""


class LedgerPosition(NamedTuple):
    """The last entry that a file counts: its number and hash. `at`: when the newest of them was made (ISO 8601 UTC)."""

    head: int
    hash: str
    at: str


def fill_holders(database: DuckDBPyConnection, ledger: Ledger, as_of: datetime, kept: Path | None) -> None:
    """Make the table `holders` by the entries up to a moment. `kept`: the file to use, and to write anew if need be."""
    database.execute(_HOLDERS)
    head = ledger.head()
    known = _take_kept(database, ledger, kept, as_of) if kept else None
    nodes = _list_nodes(ledger, known.head if known else 0)
    if known:
        database.execute(_DROP, {"nodes": nodes})
    latest = known.at if known else ""
    for names in split_batches(nodes, NODES_AT_ONCE):
        rows: list[tuple[object, ...]] = []
        for node, entries in ledger.entries_by_node(names, HOLDER_ENTRY_KINDS).items():
            latest = max([latest, *(format_time(entry.at) for entry in entries)])
            rows += map(_make_row, list_part_holders(node, _leave_out_later(entries, as_of)))
        insert_rows(database, "holders", rows)
    if kept and nodes and latest <= format_time(as_of):
        _write(database, kept, LedgerPosition(head, ledger.hash_of(head) or "", latest))


def _list_nodes(ledger: Ledger, after: int) -> list[str]:
    """Return the nodes whose holders may be others after an entry; after none: all that have a place."""
    kinds = HOLDER_ENTRY_KINDS if after else ("node.enrolled", SetupSeenEntry.kind)
    return sorted({entry.node for entry in ledger.entries(kinds=kinds, after=after) if entry.node})


def _leave_out_later(entries: Iterable[LedgerEntry], as_of: datetime) -> list[LedgerEntry]:
    return [entry for entry in entries if parse_time(entry.at) <= as_of]


def _take_kept(database: DuckDBPyConnection, ledger: Ledger, kept: Path, as_of: datetime) -> LedgerPosition | None:
    """Fill the table from the file. Returns None, and takes nothing, if it is damaged, newer, or of another ledger."""
    import duckdb

    try:
        told = dict(database.execute(_KNOWN, {"file": str(kept)}).fetchall())
        up_to = LedgerPosition(int(told["head"]), told["hash"], told["at"])
        is_of_ledger = ledger.hash_of(up_to.head) == up_to.hash
        if told["form"] != FORM or not is_of_ledger or up_to.at > format_time(as_of):
            return None
        database.execute(_TAKE, {"file": str(kept)})
    except (duckdb.Error, KeyError, ValueError):
        return None
    return up_to


def _write(database: DuckDBPyConnection, kept: Path, up_to: LedgerPosition) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    scratch = kept.with_name(f".{kept.name}.{os.getpid()}")
    try:
        quoted = str(scratch).replace("'", "''")
        database.execute(_WRITE.format(file=quoted, form=FORM, **up_to._asdict()))
        scratch.replace(kept)
    finally:
        scratch.unlink(missing_ok=True)


def insert_rows(database: DuckDBPyConnection, table: str, rows: Iterable[tuple[object, ...]]) -> None:
    """Insert rows into a table, many at a time."""
    appender = database.appender(table)
    for some in split_batches(list(rows), ROWS_AT_ONCE):
        appender.append_rows(some)
    appender.flush()


def _make_row(one: PartHolder) -> tuple[object, ...]:
    until = parse_epoch_seconds_cached(one.until) if one.until else None
    since = parse_epoch_seconds_cached(one.since)
    traits = (one.serial, one.sku, one.firmware, one.rack, one.position)
    return (one.node, one.place, *traits, since, until, "", "", one.batch, one.driver, one.kind)


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


DRAWS = 1 << 20
"""A node is drawn by the first 20 of the 64 bits of its name's hash."""
SHARED_TRAITS = ("rack", "position", "pdu", "switch", "batch", "sku", "firmware", "driver")
"""What parts may share."""
FIRST_DAY, LAST_DAY = -1_000_000_000, 1_000_000_000
_INTERVALS = """
CREATE OR REPLACE TEMP TABLE intervals AS
WITH hashed AS (
  SELECT *, hash(node, subject) AS place, hash(sku, firmware) AS alike, hash(serial, rack, position) AS held
  FROM holders
), ordered AS (
  SELECT *, lag(held) OVER w AS held_before, lag(alike) OVER w AS alike_before
  FROM hashed WINDOW w AS (PARTITION BY place ORDER BY since_s)
), marked AS (
  SELECT * EXCLUDE (held, held_before, alike_before),
    held_before IS NULL OR held <> held_before OR alike = alike_before AS begins
  FROM ordered
)
SELECT * EXCLUDE (begins), sum(begins::INT) OVER (PARTITION BY place ORDER BY since_s)::INT AS segment,
  coalesce(ceil(since_s / 86400)::INT, $first) AS first_day,
  coalesce(floor(until_s / 86400)::INT - 1, $last) AS last_day
FROM marked
"""
"""`segment`: a series goes on through new firmware. It begins anew with another part, at another place, and after a
repair. `alike`: parts of the same kind and firmware."""


def make_intervals(database: DuckDBPyConnection) -> None:
    """Make the table `intervals` from `holders`."""
    database.execute(_INTERVALS, {"first": FIRST_DAY, "last": LAST_DAY})
