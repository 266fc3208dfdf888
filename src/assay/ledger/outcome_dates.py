"""When an outcome counts as measured: as its evidence says, but clocks of nodes and of controllers may be wrong.

Nothing is measured after it is recorded. Where the clock was set back, what is recorded now stands as new as what was
recorded before that: else a pass that was dated ahead would hide each later failure until its time comes.

How old what is known of nodes is, check by check, without reading the outcomes themselves.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from assay.ledger import tables
from assay.ledger.interned_texts import TextCache, find_text_numbers
from assay.model.clock import MAX_CLOCK_SKEW
from assay.model.outcome import VERDICTS
from assay.model.timestamps import parse_epoch_seconds_cached


class CheckAge(NamedTuple):
    """Of how many subjects a check has a judgement, and the time of the oldest of their newest: seconds since 1970."""

    subjects: int
    oldest_s: float


def read_check_ages(connection: Connection, texts: TextCache, nodes: Collection[str]) -> dict[str, dict[str, CheckAge]]:
    """Return the age of each check on each node. What could not be judged (an error) is no judgement."""
    table = tables.newest.c
    judged = (table.node.in_(find_text_numbers(connection, nodes)), table.verdict != VERDICTS.index("error"))
    each = select(table.node, table.check, func.max(table.measured_s).label("seen")).where(*judged)
    one = each.group_by(table.node, table.check, table.subject).subquery().c
    query = select(one.node, one.check, func.count(), func.min(one.seen)).group_by(one.node, one.check)
    rows = connection.execute(query).all()
    texts.load(connection, {number for row in rows for number in row[:2]})
    found: dict[str, dict[str, CheckAge]] = {name: {} for name in nodes}
    for node, check, subjects, oldest_s in rows:
        found[texts[node]][texts[check]] = CheckAge(subjects, oldest_s)
    return found


class OutcomeDates:
    """The dates of a run's outcomes: a run of the time `at` that is recorded `now`, None where it was long ago."""

    def __init__(self, connection: Connection, at: str, now: datetime | None) -> None:
        self._connection, self._at, self._now = connection, parse_epoch_seconds_cached(at), now
        self._latest = now.timestamp() if now else self._at
        self._floors: dict[tuple[int, int], float] = {}

    def load(self, nodes: Collection[int]) -> None:
        """Look up what these nodes have that is dated ahead of the clock."""
        if self._now is None:
            return
        table, ahead = tables.newest.c, self._latest + MAX_CLOCK_SKEW.total_seconds()
        highest = select(table.check, table.subject, func.max(table.measured_s))
        query = highest.where(table.node.in_(nodes), table.measured_s > ahead).group_by(table.check, table.subject)
        self._floors = {(check, subject): date for check, subject, date in self._connection.execute(query)}

    def date_of(self, check: int, subject: int, evidence_at: str) -> float:
        """Return when an outcome counts as measured, in seconds since 1970."""
        seen = min(parse_epoch_seconds_cached(evidence_at) if evidence_at else self._at, self._latest)
        return max(seen, self._floors.get((check, subject), seen))
