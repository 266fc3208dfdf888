"""What visits to idle nodes cost customers: how long they waited at most until a load was gone. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from assay.model.entries.schedule_entries import NodeLoadedEntry
from assay.model.ledger_entry import LedgerEntry


@dataclass(frozen=True, slots=True)
class VisitCosts:
    """The visits of one schedule in one pool: how many, how many made room for a customer, and how fast.

    `gone_ms` are the waits that are known, in milliseconds, in ascending order.
    """

    schedule: str
    pool: str
    visits: int
    made_room: int
    gone_ms: tuple[int, ...]

    def find_percentile(self, percent: float) -> int | None:
        """Return the wait that this share of the visits did not exceed (nearest rank); None if none is known."""
        if not self.gone_ms:
            return None
        return self.gone_ms[max(0, math.ceil(percent / 100 * len(self.gone_ms)) - 1)]


def collect_visit_costs(entries: Iterable[LedgerEntry], pools: Mapping[str, str]) -> list[VisitCosts]:
    """Return the costs by schedule and pool. `pools` is the pool of each node; visits of other nodes have pool ""."""
    groups: dict[tuple[str, str], list[NodeLoadedEntry]] = defaultdict(list)
    for entry in entries:
        if entry.kind == NodeLoadedEntry.kind:
            visit = NodeLoadedEntry.read(entry)
            groups[visit.schedule, pools.get(entry.node, "")].append(visit)
    return [_sum_up(schedule, pool, visits) for (schedule, pool), visits in sorted(groups.items())]


def _sum_up(schedule: str, pool: str, visits: Sequence[NodeLoadedEntry]) -> VisitCosts:
    known = sorted(visit.gone_ms for visit in visits if visit.gone_ms is not None)
    return VisitCosts(schedule, pool, len(visits), sum(bool(visit.reason) for visit in visits), tuple(known))
