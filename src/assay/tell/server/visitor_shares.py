"""The share of each visitor, counted by name: what one asks for takes nothing from the others.

Works on the event loop's thread only.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from weakref import WeakValueDictionary

from anyio import CapacityLimiter

from assay.tell.server.requests import make_refusal

MAX_WAITING = 32
"""Requests of one visitor that wait for their turn: more of them are refused."""
MAX_STREAMS = 16
"""Streams that one visitor may have open: all others still get theirs."""


class VisitorShares:
    """What each visitor has under way."""

    def __init__(self) -> None:
        self._turns = WeakValueDictionary[str, CapacityLimiter]()
        self._streams = Counter[str]()
        self._ordered = dict[str, float]()

    def take_turn(self, visitor: str) -> CapacityLimiter:
        """Return what lets one request of a visitor go on at a time. Raises a refusal for one too many."""
        turn = self.find_turn(visitor)
        if turn.statistics().tasks_waiting >= MAX_WAITING:
            raise make_refusal(429, f"{visitor} has {MAX_WAITING} requests waiting already", wait_s=5)
        return turn

    def find_turn(self, visitor: str) -> CapacityLimiter:
        """Return the same for what was taken on already, such as a stream."""
        return self._turns.get(visitor) or self._turns.setdefault(visitor, CapacityLimiter(1))

    def note_order(self, visitor: str) -> None:
        """Note that a visitor gave an order now."""
        self._ordered[visitor] = time.monotonic()

    def ordered_at(self, visitor: str) -> float:
        """Return when a visitor last gave an order, in monotonic seconds."""
        return self._ordered.get(visitor, 0.0)

    def begin_stream(self, visitor: str) -> Callable[[], None]:
        """Count a stream of a visitor, and return what ends it. Raises a refusal for one too many."""
        if self._streams[visitor] >= MAX_STREAMS:
            raise make_refusal(429, f"{visitor} follows the ledger {MAX_STREAMS} times already", wait_s=30)
        self._streams[visitor] += 1
        return partial(self._streams.subtract, (visitor,))
