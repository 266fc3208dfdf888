"""The ledger's tables: one wide list of entries, and narrow ones for what is counted (outcomes, measurements).

Append-only is the database's own promise, kept by triggers, so that no tool that opens the file breaks it by accident.
"""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Connection, Float, ForeignKey, Index, Integer, MetaData, Table, Text
from sqlalchemy.schema import CreateIndex, CreateTable

from assay.ledger.words import VERSION

metadata = MetaData()

about = Table("assay_ledger", metadata, Column("version", Integer, primary_key=True))

entries = Table(
    "entry",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False, unique=True),
    Column("at", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("node", Text, nullable=False),
    Column("body", Text, nullable=False),
    Index("entry_by_node", "node", "seq"),
    Index("entry_by_kind", "kind", "seq"),
    sqlite_autoincrement=True,
)

runs = Table(
    "run",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False, unique=True),
    Column("at", Text, nullable=False),
    Column("phases", Text, nullable=False),
    Column("nodes", Text, nullable=False),
    Column("spec_commit", Text, nullable=False),
    Column("dirty", Boolean, nullable=False),
    Column("suite_hash", Text, nullable=False),
    Column("who", Text, nullable=False),
    sqlite_autoincrement=True,
)

outcomes = Table(
    "outcome",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("run", Integer, ForeignKey("run.seq"), nullable=False),
    Column("measured_s", Float, nullable=False),  # when the evidence was collected, as a number that sorts
    Column("check", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("node", Text, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("fault", Text, nullable=False),
    Column("phases", Text, nullable=False),
    Column("active", Boolean, nullable=False),
    Column("evidence", Text, nullable=False),
    Column("evidence_at", Text, nullable=False),
    Column("duration_s", Float, nullable=False),
    Index("outcome_by_run", "run"),
    Index("outcome_by_node", "node", "check", "subject", "measured_s"),
    Index("outcome_by_check", "check", "subject", "verdict", "measured_s"),
    sqlite_autoincrement=True,
)

measurements = Table(
    "measurement",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("outcome", Integer, ForeignKey("outcome.seq"), nullable=False),
    Column("name", Text, nullable=False),
    Column("value", Float, nullable=False),
    Column("unit", Text, nullable=False),
    Column("at_least", Float),
    Column("at_most", Float),
    Column("source", Text, nullable=False),
    Index("measurement_by_outcome", "outcome"),
    Index("measurement_by_name", "name"),
    sqlite_autoincrement=True,
)

_SQLITE_GUARDS = (
    "CREATE TRIGGER {t}_no_update BEFORE UPDATE ON {t} BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    "CREATE TRIGGER {t}_no_delete BEFORE DELETE ON {t} BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
)
# INSERT OR REPLACE deletes without the delete trigger; a row that is already there is therefore left as it is.
_SQLITE_KEEP = (
    "CREATE TRIGGER {t}_no_replace BEFORE INSERT ON {t} WHEN EXISTS (SELECT 1 FROM {t} WHERE {same}) "
    "BEGIN SELECT RAISE(IGNORE); END"
)
_POSTGRES_REFUSE = """
CREATE FUNCTION assay_append_only() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$
"""
_POSTGRES_GUARD = (
    "CREATE TRIGGER {t}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {t} "
    "FOR EACH STATEMENT EXECUTE FUNCTION assay_append_only()"
)


def create(connection: Connection) -> None:
    """Make an empty ledger, guarded, inside the transaction of `connection`."""
    for table in metadata.sorted_tables:
        connection.execute(CreateTable(table))
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            connection.execute(CreateIndex(index))
    for statement in _guards(connection.dialect.name):
        connection.exec_driver_sql(statement)
    connection.execute(about.insert().values(version=VERSION))


def _guards(dialect: str) -> list[str]:
    names = [table.name for table in metadata.sorted_tables]
    if dialect == "postgresql":
        return [_POSTGRES_REFUSE, *(_POSTGRES_GUARD.format(t=name) for name in names)]
    guards = [guard.format(t=name) for name in names for guard in _SQLITE_GUARDS]
    for table in metadata.sorted_tables:
        keys = [column.name for column in table.columns if column.primary_key or column.unique]
        same = " OR ".join(f"{key} = NEW.{key}" for key in keys)
        guards.append(_SQLITE_KEEP.format(t=table.name, same=same))
    return guards
