"""What somebody with all rights can do to a ledger: alter it, and make its hash chains anew so that they fit."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, delete, insert, select, text, update

from assay.ledger import tables
from assay.ledger.hash_chain import HASHED_FIELDS, OUTCOME_COLUMNS, RunDigest, hash_line
from assay.ledger.newest.outcome_queries import select_expected_newest
from assay.ledger.schema_upgrade import select_hashed_columns
from assay.ledger.store import Ledger
from assay.model.outcome import VERDICTS

GUARDS = {
    "sqlite": "SELECT 'DROP TRIGGER ' || name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT 'DROP TRIGGER IF EXISTS ' || relname || '_append_only ON ' || quote_ident(relname) "
    "FROM pg_class WHERE relname IN ('entry', 'run', 'text', 'outcome', 'measurement', 'assay_ledger')",
}


def flip_outcomes(ledger: Ledger) -> None:
    """Turn every failure into a pass, and make the chain of runs anew."""
    with ledger._engine.begin() as connection:
        drop_guards(connection)
        connection.execute(update(tables.outcomes).values(verdict=VERDICTS.index("pass")))
        rebuild_runs(connection)
        rebuild_newest(connection)


def delete_runs(ledger: Ledger) -> None:
    """Take out every run and outcome, as if none had ever been."""
    with ledger._engine.begin() as connection:
        drop_guards(connection)
        for table in (tables.newest, tables.measurements, tables.outcomes, tables.texts, tables.runs):
            connection.execute(delete(table))
        save_end(connection, "run", 0, "")


def roll_back(ledger: Ledger, entries: int, runs: int) -> None:
    """Take out what came after so many entries and runs, as an old copy that is restored does."""
    with ledger._engine.begin() as connection:
        drop_guards(connection)
        kept = connection.execute(select(tables.runs).where(tables.runs.c.seq == runs)).mappings().one()
        connection.execute(delete(tables.newest))
        connection.execute(delete(tables.measurements).where(tables.measurements.c.outcome > kept["outcomes"]))
        connection.execute(delete(tables.outcomes).where(tables.outcomes.c.seq > kept["outcomes"]))
        connection.execute(delete(tables.texts).where(tables.texts.c.seq > kept["texts"]))
        for table, chain, count in ((tables.entries, "entry", entries), (tables.runs, "run", runs)):
            connection.execute(delete(table).where(table.c.seq > count))
            last = connection.execute(select(table.c.hash).where(table.c.seq == count)).scalar_one()
            save_end(connection, chain, count, last)
        rebuild_newest(connection)


def rewrite_entries(ledger: Ledger) -> None:
    """Give every entry another author, and make the chain of entries anew."""
    with ledger._engine.begin() as connection:
        drop_guards(connection)
        connection.execute(update(tables.entries).values(body='{"pool": "h100-b", "state": "production"}'))
        rebuild_chain(connection, tables.entries, "entry")


def drop_guards(connection: Connection) -> None:
    for (statement,) in connection.execute(text(GUARDS[connection.dialect.name])).all():
        connection.execute(text(statement))


def rebuild_runs(connection: Connection) -> None:
    before = {"texts": 0, "outcomes": 0}
    for run in connection.execute(select(tables.runs).order_by(tables.runs.c.seq)).mappings().all():
        digest = RunDigest()
        texts, told, measured = tables.texts.c, tables.outcomes.c, tables.measurements.c
        own = told.seq.between(before["outcomes"] + 1, run["outcomes"])
        new = texts.seq.between(before["texts"] + 1, run["texts"])
        digest.texts(connection.execute(select(tables.texts).where(new).order_by(texts.seq)))
        lines = connection.execute(select(*(told[name] for name in OUTCOME_COLUMNS)).where(own).order_by(told.seq))
        digest.outcomes(select_hashed_columns(map(tuple, lines)))
        values = select(measured.outcome, measured.gauge, measured.value).order_by(measured.seq)
        digest.measured(
            connection.execute(values.where(measured.outcome.between(before["outcomes"] + 1, run["outcomes"])))
        )
        row = tables.runs.c.seq == run["seq"]
        connection.execute(update(tables.runs).where(row).values(digest=digest.hexdigest()))
        before = {"texts": run["texts"], "outcomes": run["outcomes"]}
    rebuild_chain(connection, tables.runs, "run")


def rebuild_chain(connection: Connection, table: Any, of: Any) -> None:
    seq, hash_ = 0, ""
    columns = [table.c.seq, *(table.c[name] for name in HASHED_FIELDS[of])]
    for line in connection.execute(select(*columns).order_by(table.c.seq)).all():
        seq, hash_ = line[0], hash_line(hash_, line)
        connection.execute(update(table).where(table.c.seq == seq).values(hash=hash_))
    save_end(connection, of, seq, hash_)


def rebuild_newest(connection: Connection) -> None:
    expected = connection.execute(select_expected_newest()).mappings().all()
    connection.execute(delete(tables.newest))
    connection.execute(insert(tables.newest), [dict(row) for row in expected])


def save_end(connection: Connection, of: str, seq: int, hash_: str) -> None:
    connection.execute(update(tables.chains).where(tables.chains.c.name == of).values(seq=seq, hash=hash_))
