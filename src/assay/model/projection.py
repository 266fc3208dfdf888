"""A state that follows from ledger entries. Pure: the same entries give the same state, however they are cut."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from assay.model.ledger_entry import LedgerEntry

S = TypeVar("S")


@dataclass(frozen=True, eq=False)
class Projection(Generic[S]):
    """How a state follows from the entries of some `kinds`, beginning with `initial()`.

    `step` returns the state after one more entry. It may change the state that it gets, if `copy` returns one that it
    may change: this is called once before a part of entries, so that a state which somebody has read never changes.
    """

    kinds: Collection[str]
    initial: Callable[[], S]
    step: Callable[[S, LedgerEntry], S]
    copy: Callable[[S], S] = lambda state: state

    def fold(self, entries: Iterable[LedgerEntry], state: S | None = None) -> S:
        """Return the state after these entries, which follow those of `state`; those of other kinds change nothing."""
        folded = self.initial() if state is None else self.copy(state)
        for entry in entries:
            if entry.kind in self.kinds:
                folded = self.step(folded, entry)
        return folded


@dataclass(frozen=True)
class StateForm(Generic[S]):
    """How a projection's state is kept as plain JSON data, for processes that begin later.

    Whoever folds in another way, or changes the form, raises the `version`.
    """

    projection: Projection[S]
    name: str
    version: int
    encode: Callable[[S], Any]
    decode: Callable[[Any], S]
