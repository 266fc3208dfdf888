"""The ledger's tables: a wide one for entries, and narrow ones for what is counted (outcomes, measurements).

Triggers in the database keep the tables append-only, so no tool that opens the file can change a row by accident. Only
four tables change: `member`, `newest` and `chain`, which follow from the others, and `lease`, which is no history.

The module also converts objects into rows and back. It has one statement that SQLite and PostgreSQL write alike but
SQLAlchemy keeps apart.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    RowMapping,
    Table,
    Text,
)
from sqlalchemy.schema import CreateIndex, CreateTable

from assay.ledger.errors import SCHEMA_VERSION, BrokenLedgerError
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import SuiteRun

metadata = MetaData()

schema_info = Table("assay_ledger", metadata, Column("version", Integer, primary_key=True))

entries = Table(
    "entry",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=False),  # without a gap
    Column("id", Text, nullable=False, unique=True),
    Column("at", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("node", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Index("entry_by_node", "node", "seq"),
    Index("entry_by_kind", "kind", "seq"),
)

runs = Table(
    "run",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False, unique=True),
    Column("at", Text, nullable=False),
    Column("phases", Text, nullable=False),
    Column("nodes", Text, nullable=False),
    Column("spec_commit", Text, nullable=False),
    Column("dirty", Boolean, nullable=False),
    Column("suite_hash", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("texts", Integer, nullable=False),  # the highest number of a text when it was recorded
    Column("outcomes", Integer, nullable=False),  # the highest number of an outcome
    Column("digest", Text, nullable=False),  # of its outcomes, their measurements, and the texts that it brought
    Column("hash", Text, nullable=False),
)

texts = Table(
    "text",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("key", Text, nullable=False, unique=True),  # the text, or the digest of a long one
    Column("long", Text),
    sqlite_autoincrement=True,
)

outcomes = Table(  # what is said in words is a number here, that of its text; a row may stand for several subjects
    "outcome",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("run", Integer, ForeignKey("run.seq", deferrable=True, initially="DEFERRED"), nullable=False),
    Column("measured_s", Float, nullable=False),  # when the evidence was collected, as a number that sorts
    Column("check", Integer, nullable=False),
    Column("subject", Integer, nullable=False),  # or a list of subjects, as in `member`
    Column("node", Integer, nullable=False),
    Column("verdict", Integer, nullable=False),
    Column("reason", Integer, nullable=False),
    Column("fault", Integer, nullable=False),
    Column("phases", Integer, nullable=False),
    Column("active", Boolean, nullable=False),
    Column("evidence", Integer, nullable=False),
    Column("evidence_at", Integer, nullable=False),
    Column("basis", Integer, nullable=False),
    Column("judged_by", Integer, nullable=False),
    Column("micros", BigInteger, nullable=False),
    Column("numbers", Text, nullable=False, server_default=""),  # of several subjects: see `newest/grouped_rows.py`
    Index("outcome_by_node", "node"),
    Index("outcome_by_check", "check", "measured_s"),
)

measurements = Table(
    "measurement",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("outcome", Integer, ForeignKey("outcome.seq"), nullable=False),
    Column("gauge", Integer, nullable=False),  # name, unit, limits and source, as a JSON list
    Column("value", Float, nullable=False),
    Index("measurement_by_outcome", "outcome"),
    sqlite_autoincrement=True,
)

members = Table(  # follows from `text`: the subjects of each list; one that stands alone is a list of itself
    "member",
    metadata,
    Column("list", Integer, primary_key=True, autoincrement=False),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("subject", Integer, nullable=False),
    Index("member_by_subject", "subject"),
    sqlite_with_rowid=False,
)

newest = Table(  # follows from `outcome`: the rows that are the newest of a check, subject and verdict
    "newest",
    metadata,
    Column("check", Integer, primary_key=True, autoincrement=False),
    Column("subject", Integer, primary_key=True, autoincrement=False),  # or a list of subjects
    Column("verdict", Integer, primary_key=True, autoincrement=False),
    Column("node", Integer, nullable=False),
    Column("measured_s", Float, nullable=False),
    Column("outcome", Integer, ForeignKey("outcome.seq"), nullable=False),
    Index("newest_by_node", "node"),
    sqlite_with_rowid=False,
)

leases = Table(
    "lease",
    metadata,
    Column("name", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("until_s", Float, nullable=False),  # by the database's clock
    sqlite_with_rowid=False,
)

chains = Table(  # how each chain of hashes ends
    "chain",
    metadata,
    Column("name", Text, primary_key=True),
    Column("seq", Integer, nullable=False),
    Column("hash", Text, nullable=False),
    sqlite_with_rowid=False,
)

MUTABLE_TABLES = (members, newest, leases, chains)

_SQLITE_GUARDS = (
    "CREATE TRIGGER {t}_no_update BEFORE UPDATE ON {t} BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    "CREATE TRIGGER {t}_no_delete BEFORE DELETE ON {t} BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
)
# INSERT OR REPLACE deletes without the delete trigger; a row that is already there is therefore left as it is.
_SQLITE_KEEP = "CREATE TRIGGER {t}_no_replace BEFORE INSERT ON {t} WHEN {same} BEGIN SELECT RAISE(IGNORE); END"
_SQLITE_KNOWN = "EXISTS (SELECT 1 FROM {t} WHERE {key} = NEW.{key})"
_POSTGRES_REFUSE = """
CREATE FUNCTION assay_append_only() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$
"""
_POSTGRES_GUARD = (
    "CREATE TRIGGER {t}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {t} "
    "FOR EACH STATEMENT EXECUTE FUNCTION assay_append_only()"
)
ENTRY_COLUMNS = tuple(entries.c[name] for name in ("id", "at", "kind", "node", "body", "seq"))
"""The columns of which `entry_from_row` makes one."""


def create_tables(connection: Connection) -> None:
    """Make an empty ledger with its triggers, inside the transaction of `connection`."""
    for table in metadata.sorted_tables:
        connection.execute(CreateTable(table))
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            connection.execute(CreateIndex(index))
    for statement in _guards(connection.dialect.name):
        connection.exec_driver_sql(statement)
    connection.execute(chains.insert(), [{"name": name, "seq": 0, "hash": ""} for name in ("entry", "run")])
    connection.execute(schema_info.insert().values(version=SCHEMA_VERSION))


_VERSION_UPDATE = "UPDATE assay_ledger SET version = {}"


def make_version_update(dialect: str, version: int) -> list[str]:
    """Return the statements that change the version of a ledger, which its triggers otherwise forbid."""
    lifted, restored = suspend_update_guard(dialect, schema_info)
    return [lifted, _VERSION_UPDATE.format(version), restored]


def suspend_delete_guard(dialect: str, table: Table) -> tuple[str, str]:
    """Return the statements that let rows of a table be deleted, and that forbid it again, in one transaction."""
    return _suspend_guard(dialect, table.name, "no_delete", _SQLITE_GUARDS[1])


def suspend_update_guard(dialect: str, table: Table) -> tuple[str, str]:
    """Return the same for rows that are changed."""
    return _suspend_guard(dialect, table.name, "no_update", _SQLITE_GUARDS[0])


def _suspend_guard(dialect: str, name: str, guard: str, statement: str) -> tuple[str, str]:
    if dialect == "postgresql":
        return f"ALTER TABLE {name} DISABLE TRIGGER USER", f"ALTER TABLE {name} ENABLE TRIGGER USER"
    return f"DROP TRIGGER {name}_{guard}", statement.format(t=name)


def _guards(dialect: str) -> list[str]:
    kept = [table for table in metadata.sorted_tables if table not in MUTABLE_TABLES]
    names = [table.name for table in kept]
    if dialect == "postgresql":
        return [_POSTGRES_REFUSE, *(_POSTGRES_GUARD.format(t=name) for name in names)]
    guards = [guard.format(t=name) for name in names for guard in _SQLITE_GUARDS]
    for table in kept:
        keys = [column.name for column in table.columns if column.primary_key or column.unique]
        same = " OR ".join(_SQLITE_KNOWN.format(t=table.name, key=key) for key in keys)
        guards.append(_SQLITE_KEEP.format(t=table.name, same=same))
    return guards


TableRow = dict[str, Any]
_encode_json = json.JSONEncoder(sort_keys=True, ensure_ascii=False).encode


def entry_to_row(entry: LedgerEntry) -> TableRow:
    """Return the row of an entry; the ledger gives `seq`."""
    body = _encode_json(entry.body)
    return {"id": entry.id, "at": entry.at, "kind": entry.kind, "node": entry.node, "body": body}


def entry_from_row(row: Sequence[Any]) -> LedgerEntry:
    """Return the entry of a row of `ENTRY_COLUMNS`. This must be fast: a new process reads the whole history.

    Raises BrokenLedgerError for a body that no assay wrote.
    """
    id_, at, kind, node, body, seq = row
    try:
        content = json.loads(body)
    except (TypeError, ValueError):
        content = None
    if not isinstance(content, dict):
        raise BrokenLedgerError([f"the body of entry {seq} ({kind}, {at}) is no JSON object"], "the ledger")
    return LedgerEntry(id_, at, kind, node, content, seq)


def run_to_row(run: SuiteRun) -> TableRow:
    """Return the row of a run."""
    plain = {name: getattr(run, name) for name in SuiteRun.__slots__}
    return {**plain, "phases": json.dumps(run.phases), "nodes": json.dumps(run.nodes)}


def run_from_row(row: RowMapping) -> SuiteRun:
    """Return the run of a row."""
    plain = {name: row[name] for name in SuiteRun.__slots__}
    lists = {name: tuple(json.loads(row[name])) for name in ("phases", "nodes")}
    return SuiteRun(**{**plain, **lists})


if TYPE_CHECKING:
    from sqlalchemy.dialects.sqlite import Insert


def insert_or_update(connection: Connection, table: Table) -> Insert:
    """Return an insertion into `table` that can update rows that exist already."""
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert

        return insert(table)  # type: ignore[return-value]  # of the same form
    from sqlalchemy.dialects.sqlite import insert as sqlite_insert

    return sqlite_insert(table)
