"""Node states and newest outcomes of a ledger, kept warm for the whole process: each entry is folded once."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from threading import Lock, RLock
from weakref import WeakKeyDictionary, WeakSet

from assay.decide.state.node_state import NodeState
from assay.decide.state.node_state_projection import NodeStateProjection
from assay.ledger.store import Ledger
from assay.model.gc_pause import pause_gc
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import RecordedOutcome

OutcomesByNode = dict[str, tuple[RecordedOutcome, ...]]


class NodeStateCache:
    """The state of every node that was ever enrolled in one ledger. Safe for threads."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = weakref.proxy(ledger)
        self._lock = RLock()
        self._projection = NodeStateProjection()
        self._states: dict[str, NodeState] = {}
        self._subscriptions: WeakSet[LedgerSubscription] = WeakSet()

    def get_all(self) -> dict[str, NodeState]:
        """Return the current state of every node, by name."""
        with self._lock:
            self._catch_up()
            return dict(self._states)

    def subscribe(self) -> LedgerSubscription:
        """Return a subscription to the entries from now on."""
        with self._lock:
            subscription = LedgerSubscription(self, self.get_all(), self._projection.seq)
            self._subscriptions.add(subscription)
            return subscription

    def poll(self, subscription: LedgerSubscription) -> list[LedgerEntry]:
        """Return the new entries of a subscription, and bring its node states up to the last of them."""
        with self._lock:
            self._catch_up()
            entries, subscription.pending = subscription.pending, []
            changed = {entry.node for entry in entries}
            _update_states(subscription.node_states, {name: self._states.get(name) for name in changed})
            subscription.seq = self._projection.seq
            return entries

    def _catch_up(self) -> None:
        if self._ledger.head() <= self._projection.seq:
            return
        with nullcontext() if self._projection.seq else pause_gc():
            entries = self._ledger.entries(after=self._projection.seq)
            self._projection.apply(entries)
            states = {name: self._projection.node_state(name) for name in {entry.node for entry in entries}}
        _update_states(self._states, states)
        for subscription in self._subscriptions:
            subscription.pending += entries


def _update_states(known: dict[str, NodeState], changed: Mapping[str, NodeState | None]) -> None:
    """Put changed states into `known`, and take out names that no machine has any more."""
    for name, state in changed.items():
        if state is None:
            known.pop(name, None)
        else:
            known[name] = state


class LedgerSubscription:
    """One reader of a ledger: the node states up to the entry `seq`, and the later entries that it has not read."""

    def __init__(self, source: NodeStateCache, node_states: dict[str, NodeState], seq: int) -> None:
        self._source = source
        self.node_states, self.seq = node_states, seq
        self.pending: list[LedgerEntry] = []

    def poll(self) -> list[LedgerEntry]:
        """Return the entries since the last call, in order; `node_states` and `seq` are then as of the last one."""
        return self._source.poll(self)


_caches: WeakKeyDictionary[Ledger, NodeStateCache] = WeakKeyDictionary()
_caches_lock = RLock()


def open_node_state_cache(ledger: Ledger) -> NodeStateCache:
    """Return the one cache that this process has for a ledger."""
    with _caches_lock:
        return _caches.setdefault(ledger, NodeStateCache(ledger))


def read_node_states(ledger: Ledger) -> dict[str, NodeState]:
    """Return the current state of every node that was ever enrolled. Safe for threads."""
    return open_node_state_cache(ledger).get_all()


class LatestOutcomeCache:
    """The newest outcomes of nodes that are read again and again: read anew once a later run has judged the node.

    Safe for threads.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._lock = ledger, Lock()
        self._cached: OutcomesByNode = {}
        self._as_of = -1

    def get(self, nodes: Collection[str], keep: Collection[str] = ()) -> Mapping[str, tuple[RecordedOutcome, ...]]:
        """Return the newest outcome of each check × subject of these nodes; cache those of the nodes `keep`."""
        head = self._ledger.outcomes_head()
        with self._lock:
            if head > self._as_of:
                judged = self._ledger.find_judged_nodes(self._as_of) if self._cached else ()
                self._cached = {name: outcomes for name, outcomes in self._cached.items() if name not in judged}
                self._as_of = head
            known = self._cached if head == self._as_of else {}
            missing = [name for name in nodes if name not in known]
            known = {name: known[name] for name in nodes if name in known}
        known |= read_latest_outcomes(self._ledger, missing)
        with self._lock:
            if head >= self._as_of:
                self._as_of, self._cached = head, {name: known[name] for name in keep if name in known}
        return known


def read_latest_outcomes(ledger: Ledger, names: Collection[str]) -> OutcomesByNode:
    """Return the newest outcome of each check × subject of these nodes."""
    found: dict[str, list[RecordedOutcome]] = {name: [] for name in names}
    for recorded in ledger.latest(nodes=names) if names else ():
        found[recorded.outcome.node].append(recorded)
    return {name: tuple(outcomes) for name, outcomes in found.items()}
