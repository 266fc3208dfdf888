"""Turns what agents deliver into faults in the ledger at once, in the way in which a pass does it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from assay.controller.desk import Desk
from assay.controller.lock import told_by_one
from assay.controller.looking.faults import entries_of
from assay.lifecycle.fold import Chronicle
from assay.model.entry import Entry
from assay.model.evidence import Evidence


class Stream:
    """Adds to the stories of a ledger that it keeps up with. For one thread."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self._chronicle = desk, Chronicle()

    def take(self, delivered: Sequence[Evidence]) -> list[Entry]:
        """Append the faults that these documents add and return them. What was told before adds nothing.

        One transaction, and one lock, for as many nodes as there are; a node's documents go in one after the other.
        Raises Trouble when the ledger cannot be written: then nothing was taken.
        """
        added: list[Entry] = []
        for some in _rounds(delivered):
            with told_by_one(self.desk.home):
                self._chronicle.hear(self.desk.ledger.entries(after=self._chronicle.seq))
                entries = [entry for evidence in some for entry in self._of(evidence)]
                self.desk.ledger.append(*entries)
            added += entries
        return added

    def _of(self, evidence: Evidence) -> list[Entry]:
        story = self._chronicle.story(evidence.node)
        return entries_of(self.desk, story, evidence) if story else []


def _rounds(delivered: Sequence[Evidence]) -> Iterator[list[Evidence]]:
    """Yield the documents in groups, in order, each with at most one of a node."""
    rounds: dict[int, list[Evidence]] = defaultdict(list)
    taken: dict[str, int] = defaultdict(int)
    for evidence in delivered:
        rounds[taken[evidence.node]].append(evidence)
        taken[evidence.node] += 1
    yield from rounds.values()
