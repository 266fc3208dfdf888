"""When an outcome counts as measured: as its evidence says, but clocks of nodes and of controllers may be wrong.

Nothing is measured after it is recorded. Where the clock was set back, what is recorded now stands as new as what was
recorded before that: else a pass that was dated ahead would hide each later failure until its time comes.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Connection, func, select

from assay.ledger import tables
from assay.ledger.times import seconds_of
from assay.model.clock import AHEAD


class Dates:
    """The dates of a run's outcomes: a run of the time `at` that is recorded `now`, None where it was long ago."""

    def __init__(self, connection: Connection, at: str, now: datetime | None) -> None:
        self._connection, self._at, self._now = connection, seconds_of(at), now
        self._latest = now.timestamp() if now else self._at
        self._floors: dict[tuple[int, int], float] = {}

    def learn(self, nodes: Collection[int]) -> None:
        """Look up what these nodes have that is dated ahead of the clock."""
        if self._now is None:
            return
        table, ahead = tables.newest.c, self._latest + AHEAD.total_seconds()
        highest = select(table.check, table.subject, func.max(table.measured_s))
        query = highest.where(table.node.in_(nodes), table.measured_s > ahead).group_by(table.check, table.subject)
        self._floors = {(check, subject): date for check, subject, date in self._connection.execute(query)}

    def of(self, check: int, subject: int, evidence_at: str) -> float:
        """Return when an outcome counts as measured, in seconds since 1970."""
        seen = min(seconds_of(evidence_at) if evidence_at else self._at, self._latest)
        return max(seen, self._floors.get((check, subject), seen))
