"""How old what is known of nodes is, check by check, without reading the outcomes themselves."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from assay.ledger import tables
from assay.ledger.texts import Texts, numbers_of
from assay.model.outcome import VERDICTS


class Age(NamedTuple):
    """Of how many subjects a check has a judgement, and the time of the oldest of their newest: seconds since 1970."""

    subjects: int
    oldest_s: float


def ages(connection: Connection, texts: Texts, nodes: Collection[str]) -> dict[str, dict[str, Age]]:
    """Return the age of each check on each node. What could not be judged (an error) is no judgement."""
    table = tables.newest.c
    judged = (table.node.in_(numbers_of(connection, nodes)), table.verdict != VERDICTS.index("error"))
    each = select(table.node, table.check, func.max(table.measured_s).label("seen")).where(*judged)
    one = each.group_by(table.node, table.check, table.subject).subquery().c
    query = select(one.node, one.check, func.count(), func.min(one.seen)).group_by(one.node, one.check)
    rows = connection.execute(query).all()
    texts.learn(connection, {number for row in rows for number in row[:2]})
    found: dict[str, dict[str, Age]] = {name: {} for name in nodes}
    for node, check, subjects, oldest_s in rows:
        found[texts[node]][texts[check]] = Age(subjects, oldest_s)
    return found
