"""The stored form of one entry of the ledger, the ids of entries, and the states that follow from entries.

`assay.model.entries` has a class for the content of each entry kind: it names and types what `body` holds. Projections
are pure: the same entries give the same state, however they are cut.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from assay.model.facts import fact

Context = Literal["fleet", "lab"]
IN_LAB = "lab"
"""The key that the ledger of a lab puts into the body of each of its entries."""


@fact
class LedgerEntry:
    """One entry of the ledger. Appending an id that the ledger has already changes nothing."""

    id: str
    """What tells it from all others."""
    at: str
    """When it was written: ISO 8601 with the offset of UTC."""
    kind: str
    """The kind of entry, such as fault, decision, transition or effect.verified."""
    node: str = ""
    """The node that it is about; "" for none."""
    body: dict[str, Any] = field(default_factory=dict)
    """The fields of an entry of this kind."""
    seq: int = 0
    """Its number in the ledger, counted from 1."""

    @property
    def context(self) -> Context:
        """Where it was made: on the real fleet, or in a lab."""
        return "lab" if IN_LAB in self.body else "fleet"


def derive_id(*parts: str) -> str:
    """Return the id that follows from `parts`. The same parts give the same id in every process and version."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]


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
    """How a projection's state is kept as lines of JSON, for processes that begin later.

    `encode` gives the plain data of each line, and `decode` takes the lines. Whoever folds in another way, or changes
    the form, raises the `version`.
    """

    projection: Projection[S]
    name: str
    version: int
    encode: Callable[[S], list[Any]]
    decode: Callable[[Sequence[str]], S]
