"""Node states and newest outcomes of a ledger, kept warm for the whole process: each entry is folded once.

The rollouts of one ledger, kept warm: each entry is read once. Safe for threads.

Keeps since when, and why, nobody knows which jobs a node has: its scheduler gave no answer, or does not know it.

    .assay/unknown-jobs.json
      NODE: {since: ISO 8601 UTC, reason}

The controller writes the file when something changes; `assay status` and `assay explain` read it. It may be deleted.
"""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Collection, Mapping
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock, RLock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakSet

from assay.decide.rollouts.rollout_history import ROLLOUT_KINDS, Rollout, RolloutHistory
from assay.decide.state.node_projection import NodeStateProjection
from assay.decide.state.node_state import NodeState
from assay.ledger.store import Ledger
from assay.model.gc_pause import pause_gc
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import RecordedOutcome

if TYPE_CHECKING:
    from assay.adapters.scheduler import StatusReadings


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


class RolloutCache:
    """Reads the entries about rollouts that are new."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._history, self._lock = ledger, RolloutHistory(), RLock()
        self._outcomes = LatestOutcomeCache(ledger)

    def read(self) -> RolloutHistory:
        """Return the rollouts as they are now. The next call changes what it returned."""
        with self._lock:
            head = self._ledger.head()
            if head > self._history.seq:
                self._history.apply(self._ledger.entries(kinds=ROLLOUT_KINDS, after=self._history.seq))
                self._history.seq = max(head, self._history.seq)
            return self._history

    def find_active(self) -> Rollout | None:
        """Return the rollout that has not ended, None without one."""
        with self._lock:
            return self.read().find_active()

    def read_outcomes(self, names: Collection[str]) -> Mapping[str, tuple[RecordedOutcome, ...]]:
        """Return the newest outcomes of nodes that came back, read again only after another run was recorded."""
        return self._outcomes.get(names, keep=names)


FILE_NAME = "unknown-jobs.json"
NOT_KNOWN_THERE = "its scheduler does not know this node"


@dataclass(frozen=True, slots=True)
class UnknownJobs:
    """That the jobs of a node are not known since a time (ISO 8601 UTC), and the last reason."""

    since: str
    reason: str


def read_unknown_jobs(folder: Path) -> dict[str, UnknownJobs]:
    """Return the nodes whose jobs are not known, by name. `folder` is the fleet's `.assay`."""
    try:
        content = json.loads((folder / FILE_NAME).read_text())
        return {node: UnknownJobs(**known) for node, known in content.items()}
    except (OSError, ValueError, TypeError, AttributeError):  # none, or half of one: the next pass writes it anew
        return {}


def record_unknown_jobs(folder: Path, readings: StatusReadings, now: str, *, is_whole: bool) -> None:
    """Write down which nodes of a reading have unknown jobs.

    If the reading `is_whole`, nodes outside of it are forgotten: nothing is to be decided about them.
    """
    known = read_unknown_jobs(folder)
    unread = {name: readings.errors.get(name, NOT_KNOWN_THERE) for name in readings.nodes - readings.statuses.keys()}
    kept = {} if is_whole else {name: jobs for name, jobs in known.items() if name not in readings.nodes}
    changed = {name: UnknownJobs(known[name].since if name in known else now, unread[name]) for name in sorted(unread)}
    if kept | changed != known:
        _write(folder, kept | changed)


def _write(folder: Path, unknown: Mapping[str, UnknownJobs]) -> None:
    """Replace the file at once. A full disk must not stop a pass: what it decides does not need the file."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f"{FILE_NAME}.{os.getpid()}"
        draft.write_text(json.dumps({node: asdict(jobs) for node, jobs in unknown.items()}, indent=1))
        draft.replace(folder / FILE_NAME)
