"""The stories of a ledger for those who ask now and then: only what is new in it is read."""

from __future__ import annotations

from threading import Lock
from weakref import WeakKeyDictionary

from assay.ledger.store import Ledger
from assay.lifecycle.fold import Chronicle
from assay.lifecycle.story import Story

_chronicles: WeakKeyDictionary[Ledger, Chronicle] = WeakKeyDictionary()
_turn = Lock()


def stories_of(ledger: Ledger) -> dict[str, Story]:
    """Return the story of every node that was ever enrolled, up to now. For any thread."""
    with _turn:
        chronicle = _chronicles.setdefault(ledger, Chronicle())
        chronicle.hear(ledger.entries(after=chronicle.seq))
        return chronicle.stories()
