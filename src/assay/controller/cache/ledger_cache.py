"""The stories of a ledger, kept warm for all who ask in this process: each line is read and folded once.

The newest outcomes of nodes, asked of the ledger again only after a run was recorded.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from threading import Lock, RLock
from weakref import WeakKeyDictionary, WeakSet

from assay.ledger.store import Ledger
from assay.lifecycle.node_state import NodeState
from assay.lifecycle.node_state_projection import NodeStateProjection
from assay.model.gc_pause import pause_gc
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import RecordedOutcome

OutcomesByNode = dict[str, tuple[RecordedOutcome, ...]]


class LatestOutcomeCache:
    """What `Ledger.latest` says, remembered for the nodes that are asked about each time. For any thread."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._lock = ledger, Lock()
        self._cached: OutcomesByNode = {}
        self._as_of = -1

    def get(self, nodes: Collection[str], keep: Collection[str] = ()) -> Mapping[str, tuple[RecordedOutcome, ...]]:
        """Return the newest outcome of each check × subject of these nodes; those of `keep` are remembered."""
        head = self._ledger.outcomes_head()
        with self._lock:
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
    for one in ledger.latest(nodes=names) if names else ():
        found[one.outcome.node].append(one)
    return {name: tuple(outcomes) for name, outcomes in found.items()}


class NodeStateCache:
    """The story of every node that was ever enrolled in one ledger. For any thread."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = weakref.proxy(ledger)
        self._lock = RLock()
        self._projection = NodeStateProjection()
        self._states: dict[str, NodeState] = {}
        self._subscriptions: WeakSet[LedgerSubscription] = WeakSet()

    def get_all(self) -> dict[str, NodeState]:
        """Return every story up to now, by node."""
        with self._lock:
            self._catch_up()
            return dict(self._states)

    def subscribe(self) -> LedgerSubscription:
        """Return an ear that hears what is written from now on."""
        with self._lock:
            ear = LedgerSubscription(self, self.get_all(), self._projection.seq)
            self._subscriptions.add(ear)
            return ear

    def poll(self, ear: LedgerSubscription) -> list[LedgerEntry]:
        """Return what an ear has not heard yet, and bring its stories up to that."""
        with self._lock:
            self._catch_up()
            news, ear.pending = ear.pending, []
            ear.stories |= {name: self._states[name] for name in {entry.node for entry in news} if name in self._states}
            ear.seq = self._projection.seq
            return news

    def _catch_up(self) -> None:
        if self._ledger.head() <= self._projection.seq:
            return
        with nullcontext() if self._projection.seq else pause_gc():
            news = self._ledger.entries(after=self._projection.seq)
            self._projection.apply(news)
            told = {name: self._projection.node_state(name) for name in {entry.node for entry in news}}
        self._states |= {name: story for name, story in told.items() if story}
        for ear in self._subscriptions:
            ear.pending += news


class LedgerSubscription:
    """What one listener has heard: the stories up to the line `seq`, and the lines after it that wait to be heard."""

    def __init__(self, source: NodeStateCache, stories: dict[str, NodeState], seq: int) -> None:
        self._source = source
        self.stories, self.seq = stories, seq
        self.pending: list[LedgerEntry] = []

    def poll(self) -> list[LedgerEntry]:
        """Return what is new since this was asked last, in order; `stories` and `seq` are as of its last line."""
        return self._source.poll(self)


_caches: WeakKeyDictionary[Ledger, NodeStateCache] = WeakKeyDictionary()
_caches_lock = RLock()


def open_node_state_cache(ledger: Ledger) -> NodeStateCache:
    """Return the stories that this process keeps of a ledger."""
    with _caches_lock:
        return _caches.setdefault(ledger, NodeStateCache(ledger))


def read_node_states(ledger: Ledger) -> dict[str, NodeState]:
    """Return the story of every node that was ever enrolled, up to now. For any thread."""
    return open_node_state_cache(ledger).get_all()
