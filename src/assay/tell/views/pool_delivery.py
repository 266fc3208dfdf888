"""What pools deliver of what they declare: who is out, which spare took whose place, when enough nodes are back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from assay.decide.moves.replacements import judge_pool
from assay.decide.state.node_state import NodeState
from assay.decide.state.service_absences import expect_return, list_fleet_absences
from assay.ledger.ledger_reader import read_projection
from assay.model.entries.node_entries import NodeReplacedEntry
from assay.model.facts import fact
from assay.model.ledger_entry import LedgerEntry, Projection
from assay.model.timestamps import format_time
from assay.tell.views.records import RecordSource, find_unread

SWAPS_SHOWN = 20


@fact
class AwayNode:
    """A node of the pool that is out of service."""

    node: str
    """The name of the node."""
    state: str
    """Its state."""
    since: str
    """When it left service: ISO 8601 UTC."""
    expected: str
    """When it should be back: ISO 8601 UTC; "" if nothing tells."""
    place: str
    """What becomes of its place: awaited, overdue (a spare is due) or replaced."""


@fact
class PoolDelivery:
    """What a pool delivers of what the inventory declares."""

    pool: str
    """The name of the pool."""
    declared: int
    """How many nodes it must deliver."""
    delivered: int
    """How many serve, and are known."""
    not_known: int
    """How many more are in service, and are not known: their last reading is too old."""
    declared_spares: int
    """How many spares it should have."""
    spares: int
    """How many spares it has."""
    missing: int
    """How many nodes fewer serve than are declared."""
    lacking: int
    """For how many of these there is no spare, though nobody waits for them."""
    expected: str
    """When enough nodes should be back, if spares are lacking: ISO 8601 UTC; "" if nothing tells, or none lacks."""
    away: tuple[AwayNode, ...]
    """The nodes that are out, those that are overdue first."""
    swaps: tuple[LedgerEntry, ...]
    """The last entries `node.replaced`, the newest first: which spare took whose place, by name and serial number."""

    def describe(self) -> str:
        """Return it in a line for people."""
        line = f"pool {self.pool}: {self.delivered} of {self.declared} nodes serve"
        line += f", {self.not_known} more are not known" if self.not_known else ""
        line += f", {self.spares} of {self.declared_spares} spares are left"
        if not self.lacking:
            return line
        day = f"enough should be back on {self.expected[:10]}" if self.expected else "when enough are back is not known"
        return f"{line}; {self.lacking} lack, without a spare: {day}"


def _add_swap(swaps: dict[str, tuple[LedgerEntry, ...]], entry: LedgerEntry) -> dict[str, tuple[LedgerEntry, ...]]:
    pool = NodeReplacedEntry.read(entry).pool
    return {**swaps, pool: (entry, *swaps.get(pool, ()))[:SWAPS_SHOWN]}


SWAPS = Projection[dict[str, tuple[LedgerEntry, ...]]]((NodeReplacedEntry.kind,), dict, _add_swap)
"""The last swaps of each pool, the newest first."""


def list_pool_deliveries(source: RecordSource, states: Collection[NodeState]) -> list[PoolDelivery]:
    """Return the pools that declare their capacity. `states`: of all nodes."""
    if not source.fleet.capacities:
        return []
    policy, now, swaps = source.fleet.policy, source.clock.now(), read_projection(source.ledger_for_reading, SWAPS)
    by_pool: dict[str, list[NodeState]] = defaultdict(list)
    for state in states:
        if state.node in source.fleet.nodes and state.state in policy.states:
            by_pool[state.pool].append(state)
    deliveries, absences = [], list_fleet_absences([policy], states)
    for pool, declared in source.fleet.capacities.items():
        standing = judge_pool(policy, pool, declared, by_pool[pool], now)
        not_known = len(find_unread(source, by_pool[pool])) if by_pool[pool] else 0
        expected = standing.expect_enough(policy, states, now) if standing.is_short else None
        places = {"overdue": standing.overdue, "awaited": standing.awaited, "replaced": standing.replaced}
        away = []
        for place, absent in ((place, absent) for place, absentees in places.items() for absent in absentees):
            back = expect_return(policy, absent.state, absences, now).find_next(now)
            words = (absent.state.node, absent.state.state, format_time(absent.since))
            away.append(AwayNode(*words, format_time(back) if back else "", place))
        deliveries.append(
            PoolDelivery(
                pool=pool,
                declared=declared.delivered,
                delivered=standing.delivered - not_known,
                not_known=not_known,
                declared_spares=declared.spares,
                spares=len(standing.spares),
                missing=standing.missing,
                lacking=max(0, standing.wanted - len(standing.spares)),
                expected=format_time(expected) if expected else "",
                away=tuple(away),
                swaps=swaps.get(pool, ()),
            )
        )
    return deliveries
