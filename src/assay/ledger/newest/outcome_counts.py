"""Counts outcomes and dates passes in the database, for readers of the whole fleet who need no single outcome."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from assay.ledger import tables
from assay.ledger.newest.interned_texts import BATCH_SIZE, TextCache, find_text_numbers
from assay.ledger.newest.outcome_queries import is_recorded_after
from assay.model.outcome import VERDICTS, CheckVerdict


@dataclass(frozen=True, slots=True)
class OutcomeCounts:
    """What some runs say: how many they are, when the last one was (ISO 8601 UTC), and outcomes by check and verdict.

    `last` is the number of the last of them, as in `Ledger.outcomes_head`.
    """

    last: int
    runs: int
    last_at: str
    outcomes: Mapping[tuple[str, CheckVerdict], int]


def count_outcomes(connection: Connection, texts: TextCache, after: int) -> OutcomeCounts:
    """Return the counts of the runs with numbers above `after`. Runs that are recorded meanwhile are left out."""
    runs, said = tables.runs.c, tables.outcomes.c
    count, last = connection.execute(select(func.count(), func.max(runs.seq)).where(runs.seq > after)).one()
    if not count:
        return OutcomeCounts(after, 0, "", {})
    last_at: str = connection.execute(select(runs.at).where(runs.seq == last)).scalar_one()
    new = (is_recorded_after(after), said.run <= last)
    each = tables.outcomes.join(tables.members, tables.members.c.list == said.subject)
    query = select(said.check, said.verdict, func.count()).select_from(each).where(*new)
    query = query.group_by(said.check, said.verdict)
    rows = connection.execute(query).all()
    texts.load(connection, {check for check, *_ in rows})
    counts = {(texts[check], VERDICTS[verdict]): number for check, verdict, number in rows}
    return OutcomeCounts(last, count, last_at, counts)


def read_oldest_passes(
    connection: Connection, texts: TextCache, checks: Collection[str], nodes: Collection[str] | None
) -> dict[str, float]:
    """Return the oldest of the newest passes of these checks, by node, in seconds since 1970.

    Of these nodes, or of all (None); nodes without a pass are left out, and others may be among them.
    """
    table, members = tables.newest.c, tables.members.c
    wanted = [table.verdict == VERDICTS.index("pass"), table.check.in_(find_text_numbers(connection, checks))]
    if nodes is not None and len(nodes) <= BATCH_SIZE:
        wanted.append(table.node.in_(find_text_numbers(connection, nodes)))
    each = tables.newest.join(tables.members, members.list == table.subject)
    newest = select(table.node, func.max(table.measured_s).label("at_s")).select_from(each).where(*wanted)
    one = newest.group_by(table.node, table.check, members.subject).subquery().c
    rows = connection.execute(select(one.node, func.min(one.at_s)).group_by(one.node)).all()
    texts.load(connection, [node for node, _ in rows])
    return {texts[node]: at_s for node, at_s in rows}
