"""The date of an outcome: that of its evidence, corrected for wrong clocks of nodes and controllers.

No outcome has a date after its recording. If a clock was set back, an outcome recorded now counts as no older than
those recorded before it. Otherwise a pass with a date in the future would hide each later failure until that date.

The module also computes how old the evidence of nodes is, per check, without reading the outcomes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from assay.ledger import tables
from assay.ledger.newest.grouped_rows import OutcomeGroup, SubjectNumbers
from assay.ledger.newest.interned_texts import TextCache, TextNumbers, find_text_numbers
from assay.model.clock import MAX_CLOCK_SKEW
from assay.model.outcome import VERDICTS
from assay.model.timestamps import parse_epoch_seconds_cached

_EACH_NEWEST = tables.newest.join(tables.members, tables.members.c.list == tables.newest.c.subject)
"""What is newest, a row for each subject."""


class CheckAge(NamedTuple):
    """For how many subjects a check has a verdict, and the time of the oldest of the newest ones (Unix seconds)."""

    subjects: int
    oldest_s: float


def read_check_ages(connection: Connection, texts: TextCache, nodes: Collection[str]) -> dict[str, dict[str, CheckAge]]:
    """Return the age of each check on each node. An error is no verdict, so it does not count."""
    table = tables.newest.c
    judged = (table.node.in_(find_text_numbers(connection, nodes)), table.verdict != VERDICTS.index("error"))
    each = select(table.node, table.check, func.max(table.measured_s).label("seen")).select_from(_EACH_NEWEST)
    one = each.where(*judged).group_by(table.node, table.check, tables.members.c.subject).subquery().c
    query = select(one.node, one.check, func.count(), func.min(one.seen)).group_by(one.node, one.check)
    rows = connection.execute(query).all()
    texts.load(connection, {number for row in rows for number in row[:2]})
    found: dict[str, dict[str, CheckAge]] = {name: {} for name in nodes}
    for node, check, subjects, oldest_s in rows:
        found[texts[node]][texts[check]] = CheckAge(subjects, oldest_s)
    return found


class OutcomeDates:
    """The dates of a run's outcomes. The run is of the time `at` and is recorded `now` (None if long ago)."""

    def __init__(self, connection: Connection, at: str, now: datetime | None) -> None:
        self._connection, self._at, self._now = connection, parse_epoch_seconds_cached(at), now
        self._latest = now.timestamp() if now else self._at
        self._floors: dict[tuple[int, int], float] = {}

    def load(self, nodes: Collection[int]) -> None:
        """Load the outcomes of these nodes that have a date in the future."""
        if self._now is None:
            return
        table, ahead = tables.newest.c, self._latest + MAX_CLOCK_SKEW.total_seconds()
        subject = tables.members.c.subject
        highest = select(table.check, subject, func.max(table.measured_s)).select_from(_EACH_NEWEST)
        query = highest.where(table.node.in_(nodes), table.measured_s > ahead).group_by(table.check, subject)
        self._floors = {(check, subject): date for check, subject, date in self._connection.execute(query)}

    def split(self, group: OutcomeGroup, numbers: TextNumbers) -> Iterator[tuple[float, OutcomeGroup]]:
        """Yield the dates of a group's outcomes in seconds since 1970, each with those that have it: mostly, one."""
        at = group.first.evidence_at
        seen = min(parse_epoch_seconds_cached(at) if at else self._at, self._latest)
        if not self._floors:
            yield seen, group
            return
        check, by_date = numbers[group.first.check], dict[float, dict[str, SubjectNumbers]]()
        for subject, own in group.numbers.items():
            date = max(seen, self._floors.get((check, numbers[subject]), seen))
            by_date.setdefault(date, {})[subject] = own
        for date, some in by_date.items():
            yield date, OutcomeGroup(group.first, some)
