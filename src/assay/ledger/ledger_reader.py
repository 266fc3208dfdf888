"""Reads each new entry of a ledger once in a process, for everything that follows the ledger."""

from __future__ import annotations

import weakref
from contextlib import nullcontext
from threading import Lock, RLock
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary, WeakSet

from assay.ledger.store import Ledger
from assay.model.gc_pause import pause_gc
from assay.model.ledger_entry import LedgerEntry, Projection

S = TypeVar("S")
States = dict[Projection[Any], Any]
MANY_ENTRIES = 5_000


class EntryQueue:
    """The entries that a follower of the ledger has not taken yet."""

    def __init__(self) -> None:
        self.entries: list[LedgerEntry] = []


class LedgerReader:
    """The states of the projections that somebody has read, as of the entry `seq`. Safe for threads.

    Another process may append meanwhile: the head is read before the entries, and entries get their numbers in the
    order in which they become visible. So none is read twice, and none is left out.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = weakref.proxy(ledger)
        self._lock = RLock()
        self._states: States = {}
        self._failures: dict[Projection[Any], Exception] = {}
        self._queues: WeakSet[EntryQueue] = WeakSet()
        self.seq = 0

    def read(self, projection: Projection[S]) -> S:
        """Return the state as of now. It never changes.

        Raises AssayError if an entry cannot be read, such as one of a newer version of assay: for good, as the entry
        stays. Other projections go on.
        """
        with self._lock:
            self._catch_up()
            if projection not in self._states and projection not in self._failures:
                with pause_gc():
                    entries = self._ledger.entries(kinds=projection.kinds)
                    known = [entry for entry in entries if entry.seq <= self.seq]
                    self._states |= self._fold(known, {projection: projection.initial()})
            if projection in self._failures:
                raise self._failures[projection].with_traceback(None)
            return cast(S, self._states[projection])

    def follow(self) -> EntryQueue:
        """Return a queue that gets the entries from now on, of all kinds. It ends when nobody holds it any more."""
        with self._lock:
            self._catch_up()
            queue = EntryQueue()
            self._queues.add(queue)
            return queue

    def take(self, queue: EntryQueue, projection: Projection[S]) -> tuple[list[LedgerEntry], S, int]:
        """Return the new entries of a queue, and the state and the number of the ledger as of the last of them."""
        with self._lock:
            state = self.read(projection)
            entries, queue.entries = queue.entries, []
            return entries, state, self.seq

    def _catch_up(self) -> None:
        head = self._ledger.head()
        if head <= self.seq:
            return
        if self._states or self._queues:
            with pause_gc() if head - self.seq > MANY_ENTRIES else nullcontext():
                entries = self._ledger.entries(after=self.seq)
                states = self._fold(entries, self._states)
            head = max(head, entries[-1].seq if entries else 0)
            self._states = states  # from here on nothing may fail half-way
            for queue in self._queues:
                queue.entries += entries
        self.seq = head

    def _fold(self, entries: list[LedgerEntry], states: States) -> States:
        """Return the states after these entries. Without one that cannot read them: its readers are told why."""
        kinds, folded = {entry.kind for entry in entries}, dict(states)
        for projection, state in states.items():
            if not kinds.isdisjoint(projection.kinds):
                try:
                    folded[projection] = projection.fold(entries, state)
                except Exception as error:
                    self._failures[projection] = error
                    del folded[projection]
        return folded


_readers: WeakKeyDictionary[Ledger, LedgerReader] = WeakKeyDictionary()
_readers_lock = Lock()


def open_reader_of(ledger: Ledger) -> LedgerReader:
    """Return the one reader that this process has for a ledger."""
    with _readers_lock:
        reader = _readers.get(ledger)
        if reader is None:
            reader = _readers[ledger] = LedgerReader(ledger)
        return reader


def read_projection(ledger: Ledger, projection: Projection[S]) -> S:
    """Return the state of a projection as of now. It never changes; the next call may return another."""
    return open_reader_of(ledger).read(projection)
