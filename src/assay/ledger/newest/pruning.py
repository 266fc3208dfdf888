"""Deletes old outcomes from a ledger, and notes that in the same transaction, so that it can still be verified.

The newest outcome of each check, subject and verdict stays, since decisions rest on it; so does the last run. Runs and
entries are never deleted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, delete, func, select, true

from assay.ledger import tables
from assay.ledger.chain_verification import digest_contents, find_chain_problems
from assay.ledger.hash_chain import HashChain, insert_entries
from assay.model.entries.node_entries import OutcomesPrunedEntry
from assay.model.errors import AssayError
from assay.model.ledger_entry import derive_id

BATCH_SIZE = 1000
_DIGEST = re.compile(r"[0-9a-f]{64}")


def count_prunable(connection: Connection, before: datetime) -> int:
    """Return how many outcomes `prune_outcomes` would delete."""
    last = _find_last_old_run(connection, before)
    if last is None:
        return 0
    old, members = _select_old(last), tables.members.c
    each = tables.outcomes.join(tables.members, members.list == tables.outcomes.c.subject)
    query = select(func.count()).select_from(each).where(tables.outcomes.c.seq.in_(old))
    count: int = connection.execute(query).scalar_one()
    return count


def prune_outcomes(connection: Connection, before: datetime, who: str, now: datetime) -> int:
    """Delete the old outcomes of the runs before a time; return how many. `connection` is the only writer's.

    Raises AssayError for a ledger that cannot be verified: after deletion, nobody could see what was changed in it.
    """
    last = _find_last_old_run(connection, before)
    deleted = count_prunable(connection, before)
    if last is None or not deleted:
        return 0
    if problem := next(islice(find_chain_problems(connection), 1), None):
        fix = "`assay ledger verify` shows every problem; nothing was deleted"
        raise AssayError(f"this ledger cannot be verified: {problem}", fix=fix)
    old = _select_old(last)
    _delete(connection, tables.measurements, tables.measurements.c.outcome.in_(old))
    _delete(connection, tables.outcomes, tables.outcomes.c.seq.in_(old))
    entry = OutcomesPrunedEntry(last.seq, deleted, digest_contents(connection, last), who)
    chain = HashChain(connection, "entry")
    at = now.isoformat()
    insert_entries(connection, chain, [entry.make_entry(derive_id(entry.kind, str(last.seq), at), at)])
    chain.save()
    return deleted


def iter_named_evidence(connection: Connection, before: datetime | None) -> Iterator[str]:
    """Yield the digests of outcomes that stay if those before a time are pruned, and what looks so in entries."""
    last = _find_last_old_run(connection, before) if before else None
    outcomes, texts = tables.outcomes.c, tables.texts.c
    named = select(outcomes.evidence).where(outcomes.seq.not_in(_select_old(last)) if last else true()).distinct()
    query = select(func.coalesce(texts.long, texts.key)).where(texts.seq.in_(named))
    yield from connection.execute(query.execution_options(yield_per=BATCH_SIZE)).scalars()
    bodies = select(tables.entries.c.body).execution_options(yield_per=BATCH_SIZE)
    for body in connection.execute(bodies).scalars():
        yield from _DIGEST.findall(body)


def _find_last_old_run(connection: Connection, before: datetime) -> Row[Any] | None:
    """Return number, texts and outcomes of the last run before which all are old; None where there is none."""
    runs = tables.runs.c
    last, kept = None, connection.execute(select(func.max(runs.seq))).scalar()
    query: Select[Any] = select(runs.seq, runs.texts, runs.outcomes, runs.at).order_by(runs.seq)
    for row in connection.execute(query):
        if row.seq == kept or datetime.fromisoformat(row.at) >= before:
            break
        last = row
    return last


def _select_old(last: Row[Any]) -> Select[tuple[int]]:
    """Return the query of the outcomes up to a run that are the newest of no kind."""
    outcomes = tables.outcomes.c
    return select(outcomes.seq).where(
        outcomes.seq <= last.outcomes, outcomes.seq.not_in(select(tables.newest.c.outcome))
    )


def _delete(connection: Connection, table: Table, condition: ColumnElement[bool]) -> None:
    lifted, restored = tables.suspend_delete_guard(connection.dialect.name, table)
    connection.exec_driver_sql(lifted)
    connection.execute(delete(table).where(condition))
    connection.exec_driver_sql(restored)
