"""The fleet's own measurements, holders and failures: its history and ledger as the tables of `measurement_tables`.

The day on which a holder begins or ends belongs to nobody: its values may be of the part before, or of a repair. What
feeds and connects parts is the PDU by the inventory, and the leaf switch by the design.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from assay.decide.state.asset_history import HOLDER_ENTRY_KINDS, PartHolder, list_part_holders
from assay.decide.trends.days import DAY_0, HISTORY_DAYS, quote_text
from assay.decide.trends.warning_record import TREND_ENTRY_KINDS, WarningHistory, read_warning_history
from assay.fabric.design.node_cables import find_node_leaves
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
from assay.model.entries.schedule_entries import NodeLoadedEntry
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.outcome import read_part
from assay.model.specs.trend_rules import TREND_CLASSES
from assay.model.timestamps import parse_epoch_seconds_cached, parse_time

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation


NODES_AT_ONCE, ROWS_AT_ONCE = 200, 10_000
_HOLDERS = """
CREATE TABLE holders (node VARCHAR, subject VARCHAR, serial VARCHAR, sku VARCHAR, firmware VARCHAR, rack VARCHAR,
  position VARCHAR, since_s DOUBLE, until_s DOUBLE, pdu VARCHAR, switch VARCHAR, batch VARCHAR, driver VARCHAR,
  kind VARCHAR)
"""


def fill_holders(database: DuckDBPyConnection, ledger: Ledger, as_of: datetime) -> None:
    """Make the table `holders` by the entries up to a moment."""
    database.execute(_HOLDERS)
    placed = ledger.entries(kinds=("node.enrolled", SetupSeenEntry.kind))
    for names in split_batches(sorted({entry.node for entry in placed if entry.node}), NODES_AT_ONCE):
        rows: list[tuple[object, ...]] = []
        for node, entries in ledger.entries_by_node(names, HOLDER_ENTRY_KINDS).items():
            known = [entry for entry in entries if parse_time(entry.at) <= as_of]
            rows += map(_make_row, list_part_holders(node, known))
        insert_rows(database, "holders", rows)


def insert_rows(database: DuckDBPyConnection, table: str, rows: Iterable[tuple[object, ...]]) -> None:
    """Insert rows into a table, many at a time."""
    appender = database.appender(table)
    for some in split_batches(list(rows), ROWS_AT_ONCE):
        appender.append_rows(some)
    appender.flush()


def _make_row(holder: PartHolder) -> tuple[object, ...]:
    until = parse_epoch_seconds_cached(holder.until) if holder.until else None
    since = parse_epoch_seconds_cached(holder.since)
    traits = (holder.serial, holder.sku, holder.firmware, holder.rack, holder.position)
    return (holder.node, holder.place, *traits, since, until, "", "", holder.batch, holder.driver, holder.kind)


NAMED_DAYS = 7
"""The last days tell which measurements several checks take."""
_FAILURES = "CREATE TABLE failures (time_s DOUBLE, node VARCHAR, subject VARCHAR, fault VARCHAR)"
_HISTORY_DAYS = "CREATE TABLE history_days AS SELECT unnest($days)::INT AS day"
_SHARED_NAMES = """
SELECT name FROM (SELECT DISTINCT name, check_ FROM read_parquet($files))
GROUP BY name HAVING count(*) > 1 ORDER BY name
"""


class PartFailure(NamedTuple):
    """The first sighting of a fault of a part: its class, and its `ident`. `place` "": the node itself.

    `by_check`: a check found it, and nothing that a job could notice.
    """

    at: datetime
    node: str
    place: str
    fault: str
    ident: str = ""
    by_check: bool = False


@contextmanager
def open_fleet_tables(
    home: Path,
    ledger: Ledger,
    as_of: datetime,
    left_out: Collection[str] = (),
    memory: str = "1GB",
    fleet: Fleet | None = None,
) -> Iterator[DuckDBPyConnection]:
    """Have the tables of `open_tables` for the history in `home` and the ledger, as they were at a moment.

    A subject is the place in its node (`gpu3`, "" for the node), as parts change nodes and nodes change pools. A
    measurement that several checks take has the check in its name. `left_out`: files that are not read. Raises
    DamagedFilesError for files that cannot be read, and AssayError where there is no history.
    """
    days = _list_files(home, as_of, left_out)
    if not days:
        absence = f"there is no history of measurements of the {HISTORY_DAYS} days before {as_of.date()}"
        raise AssayError(absence, where=str(home), fix="run `assay validate`, or say --as-of")
    files = [file for day in days for file in day]
    with name_damaged_files(files), connect_duckdb(threads=1, memory_limit=memory) as database:
        database.execute("SET parquet_metadata_cache = true")  # each block of nodes opens the same files
        _make_measurements(database, days, as_of)
        fill_holders(database, ledger, as_of)
        database.execute(_FAILURES)
        failures = list_failures(ledger, as_of)
        insert_rows(
            database,
            "failures",
            ((failure.at.timestamp(), failure.node, failure.place, failure.fault) for failure in failures),
        )
        if fleet:
            name_feeds_and_switches(database, fleet.nodes.values(), find_node_leaves(fleet))
        yield database


def list_failures(ledger: Ledger, as_of: datetime) -> list[PartFailure]:
    """Return the faults of hardware, by the time when each was first seen; warnings of trends are none."""
    failures: dict[str, PartFailure] = {}
    for entry in ledger.entries(kinds=[FaultEntry.kind]):
        fault = FaultEntry.read(entry)
        seen = parse_time(fault.first_seen or entry.at)
        is_bad = fault.blame == "hardware" and fault.severity in ("catastrophic", "degraded")
        if fault.fault in failures or seen > as_of or not is_bad or fault.fault_class.startswith(TREND_CLASSES):
            continue
        named = read_part(fault.subject), fault.fault_class, fault.fault
        failures[fault.fault] = PartFailure(seen, entry.node, *named, by_check=set(fault.marks) == {"check"})
    return sorted(failures.values())


def read_warnings(ledger: Ledger, as_of: datetime) -> WarningHistory:
    """Return the warnings up to a moment, each with how many idle tests its node had while it was open."""
    entries = (entry for entry in ledger.entries(kinds=TREND_ENTRY_KINDS) if parse_time(entry.at) <= as_of)
    history = read_warning_history(entries)
    loaded = ledger.entries_by_node(sorted({each.node for each in history.warnings}), [NodeLoadedEntry.kind])
    counted = []
    for warning in history.warnings:
        visits = [parse_time(entry.at) for entry in loaded[warning.node]]
        tests = sum(warning.at <= visit <= (warning.closed_at or as_of) for visit in visits)
        counted.append(replace(warning, tests=tests))
    return replace(history, warnings=tuple(counted))


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
    listed = ", ".join(map(quote_text, shared))
    in_check = f"CASE WHEN name IN ({listed}) THEN name || ' of ' || split_part(check_, '::', 2) ELSE name END"
    name = in_check if shared else "name"
    subject = "CASE WHEN node = '' THEN subject ELSE split_part(subject, '/', 3) END"
    times = "epoch(run_at::TIMESTAMP) AS time_s, day - DATE '1970-01-01' AS day"
    rows.project(
        f"{times}, day AS date, node, {subject} AS subject, {name} AS name, value, unit, at_least, at_most"
    ).create_view("measurements")
    names = (Path(files[0]).parent.name.removeprefix(DAY_PREFIX) for files in days)
    database.execute(_HISTORY_DAYS, {"days": [(date.fromisoformat(name) - DAY_0).days for name in names]})


def _read_days(database: DuckDBPyConnection, files: Sequence[str]) -> DuckDBPyRelation:
    numbers = ", ".join(f"{column}::DOUBLE AS {column}" for column in ("value", "at_least", "at_most"))
    columns = f"run_at, node, subject, check_, name, unit, {numbers}, day"
    return database.read_parquet(list(files), hive_partitioning=True).project(columns)


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


_FEEDS = "UPDATE holders SET pdu = fed.pdu FROM fed WHERE holders.node = fed.node"
_SWITCHES = """
UPDATE holders SET switch = connected.switch FROM connected
WHERE holders.node = connected.node AND holders.subject = connected.subject
"""


def name_feeds_and_switches(
    database: DuckDBPyConnection, nodes: Iterable[Node], switches: Mapping[tuple[str, str], str]
) -> None:
    """Name the PDU and the switch of each holder in the tables of `open_fleet_tables`.

    They are those of today: who changed a cable, or a design, has moved the past too. `switches`: by node and place.
    """
    feeds = [(node.name, f"{node.site}/{node.settings.pdu}") for node in nodes if node.settings.pdu]
    _fill(database, "fed (node VARCHAR, pdu VARCHAR)", feeds)
    database.execute(_FEEDS)
    connected = [(*at, switch) for at, switch in switches.items()]
    _fill(database, "connected (node VARCHAR, subject VARCHAR, switch VARCHAR)", connected)
    database.execute(_SWITCHES)


def _fill(database: DuckDBPyConnection, table: str, rows: Iterable[tuple[str, ...]]) -> None:
    database.execute(f"CREATE OR REPLACE TABLE {table}")
    insert_rows(database, table.partition(" ")[0], rows)
