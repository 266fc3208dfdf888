"""The stories of a ledger, kept warm for all who ask in this process: each line is read and folded once."""

from __future__ import annotations

import weakref
from contextlib import nullcontext
from threading import RLock
from weakref import WeakKeyDictionary, WeakSet

from assay.fabric.many import many_objects
from assay.ledger.store import Ledger
from assay.lifecycle.fold import Chronicle
from assay.lifecycle.story import Story
from assay.model.entry import Entry


class Stories:
    """The story of every node that was ever enrolled in one ledger. For any thread."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = weakref.proxy(ledger)
        self._turn = RLock()
        self._chronicle = Chronicle()
        self._told: dict[str, Story] = {}
        self._ears: WeakSet[Ear] = WeakSet()

    def now(self) -> dict[str, Story]:
        """Return every story up to now, by node."""
        with self._turn:
            self._catch_up()
            return dict(self._told)

    def ear(self) -> Ear:
        """Return an ear that hears what is written from now on."""
        with self._turn:
            ear = Ear(self, self.now(), self._chronicle.seq)
            self._ears.add(ear)
            return ear

    def hear(self, ear: Ear) -> list[Entry]:
        """Return what an ear has not heard yet, and bring its stories up to that."""
        with self._turn:
            self._catch_up()
            news, ear.unheard = ear.unheard, []
            ear.stories |= {name: self._told[name] for name in {entry.node for entry in news} if name in self._told}
            ear.seq = self._chronicle.seq
            return news

    def _catch_up(self) -> None:
        if self._ledger.head() <= self._chronicle.seq:
            return
        with nullcontext() if self._chronicle.seq else many_objects():
            news = self._ledger.entries(after=self._chronicle.seq)
            self._chronicle.hear(news)
            told = {name: self._chronicle.story(name) for name in {entry.node for entry in news}}
        self._told |= {name: story for name, story in told.items() if story}
        for ear in self._ears:
            ear.unheard += news


class Ear:
    """What one listener has heard: the stories up to the line `seq`, and the lines after it that wait to be heard."""

    def __init__(self, source: Stories, stories: dict[str, Story], seq: int) -> None:
        self._source = source
        self.stories, self.seq = stories, seq
        self.unheard: list[Entry] = []

    def hear(self) -> list[Entry]:
        """Return what is new since this was asked last, in order; `stories` and `seq` are as of its last line."""
        return self._source.hear(self)


_kept: WeakKeyDictionary[Ledger, Stories] = WeakKeyDictionary()
_turn = RLock()


def stories_in(ledger: Ledger) -> Stories:
    """Return the stories that this process keeps of a ledger."""
    with _turn:
        return _kept.setdefault(ledger, Stories(ledger))


def stories_of(ledger: Ledger) -> dict[str, Story]:
    """Return the story of every node that was ever enrolled, up to now. For any thread."""
    return stories_in(ledger).now()
