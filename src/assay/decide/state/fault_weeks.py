"""How many nodes of a pool each fault class came to, week by week: what its own history leads to expect. Pure.

The projection of node states keeps it, so that a decision reads no history. A node counts once a week for a class, and
once for a fault that stays open. How many nodes are in a state is counted at the first entry of a week, also for the
weeks without entries before it: nothing changed in them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from assay.decide.state.node_state import NodeState
from assay.model.entries.faults import FaultEntry
from assay.model.ledger_entry import LedgerEntry
from assay.model.timestamps import format_time, parse_time

NO_HARM = "informational"
WEEK = timedelta(days=7)
WEEKS_KEPT = 54
"""A year of whole weeks, the week of now, and the one that a window of a week reaches into."""
MOST_SILENT = 8
"""A ledger without entries for more weeks, or with a clock that goes back, knows of no history."""
WeekKey = tuple[str, str, str]
"""Pool, state, and fault class; "" for the nodes that were in the state."""


class ClassHistory(NamedTuple):
    """To how many `nodes` a fault class came in a pool, in how many `node_weeks` of how many `weeks`."""

    nodes: int
    node_weeks: int
    weeks: int


@dataclass(slots=True)
class FaultWeeks:
    """Counts by week, since 1970. Those of the newest week change, and those of the others never do."""

    weeks: dict[int, Counter[WeekKey]] = field(default_factory=dict)
    _newest: int = -1
    _day: str = field(default="", compare=False)

    def copy(self) -> FaultWeeks:
        """Return one that changes for itself."""
        own = {week: counts.copy() for week, counts in self.weeks.items() if week == self._newest}
        return FaultWeeks(self.weeks | own, self._newest, self._day)

    def begin(self, at: str, states: Iterable[NodeState]) -> None:
        """Begin the week of an entry, where it is another one. A clock that is set far makes all begin anew."""
        if at[:10] == self._day:
            return
        self._day, week = at[:10], int(parse_time(at).timestamp() // WEEK.total_seconds())
        if week in (self._newest, self._newest - 1):  # what was written at the turn of a week may come in any order
            return
        in_states = Counter((state.pool, state.state, "") for state in states)
        goes_on = 0 < week - self._newest <= MOST_SILENT
        kept = {number: counts for number, counts in self.weeks.items() if goes_on and number > week - WEEKS_KEPT}
        silent = range(self._newest + 1, week) if goes_on else ()
        self.weeks = kept | dict.fromkeys(silent, in_states.copy()) | {week: in_states}
        self._newest = week

    def count(self, state: NodeState, entry: LedgerEntry) -> None:
        """Count a fault of a node that does not have it yet. What must be seen often counts once it was."""
        seen = FaultEntry.read(entry)
        if seen.severity == NO_HARM:
            return
        earlier = [
            fault for fault in state.faults if fault.fault_class == seen.fault_class and fault.severity != NO_HARM
        ]
        if any(fault.is_open for fault in earlier):
            return
        if max((fault.arrived_at for fault in earlier), default="") <= format_time(parse_time(entry.at) - WEEK):
            self.weeks[self._newest][state.pool, state.state, seen.fault_class] += 1

    def find_history(self, pool: str, fault_class: str, serving: Collection[str], until: datetime) -> ClassHistory:
        """Return what came to the nodes in these states, in the whole weeks of the year that ends `until` then."""
        end = int(until.timestamp() // WEEK.total_seconds())
        weeks = [counts for week, counts in self.weeks.items() if end - 52 <= week < end]
        served = [(sum(counts[pool, state, ""] for state in serving), counts) for counts in weeks]
        lived = [counts for count, counts in served if count]
        nodes = sum(counts[pool, state, fault_class] for counts in lived for state in serving)
        return ClassHistory(nodes, sum(count for count, _ in served), len(lived))

    def encode(self) -> list[Any]:
        """Return the counts as plain JSON data."""
        return [[week, [[*key, count] for key, count in counts.items()]] for week, counts in sorted(self.weeks.items())]

    @classmethod
    def decode(cls, plain: Iterable[Any]) -> FaultWeeks:
        """Return the counts that `encode` gave."""
        weeks = {week: Counter({(pool, *key): count for pool, *key, count in rows}) for week, rows in plain}
        return cls(weeks, max(weeks, default=-1))
