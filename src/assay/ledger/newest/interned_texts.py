"""Texts that many outcomes share (checks, subjects, reasons, limits). The ledger stores each once, with a number."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, insert, select

from assay.ledger.tables import texts

T = TypeVar("T")
BATCH_SIZE = 500
NO_TEXT = 0
"""The number that stands for "" in outcomes of an older schema. Texts have numbers from 1."""
MAX_KEY_LENGTH = 500
"""Characters of a text that is its own key; PostgreSQL's index takes 2,700 bytes."""


class TextNumbers:
    """The numbers of texts within the one writing transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[str, int] = {}
        self.added: list[tuple[int, str, str | None]] = []

    def load(self, wanted: Iterable[str]) -> None:
        """Give each of these texts a number: its old one, if it has one."""
        unknown = [text for text in dict.fromkeys(wanted) if text not in self._known]
        for some in split_batches(unknown, BATCH_SIZE):
            by_key = _found(self._connection, [make_key(text) for text in some])
            fresh = [text for text in some if make_key(text) not in by_key]
            if fresh:
                self._connection.execute(insert(texts), [_row(text) for text in fresh])
                numbers = _found(self._connection, [make_key(text) for text in fresh])
                self.added += sorted((numbers[row["key"]], row["key"], row["long"]) for row in map(_row, fresh))
                by_key |= numbers
            self._known |= {text: by_key[make_key(text)] for text in some}

    def __getitem__(self, text: str) -> int:
        """Return the number of a loaded text."""
        return self._known[text]

    @property
    def get(self) -> Callable[[str], int]:
        """Return the number of a loaded text; the same, for `map` over many."""
        return self._known.__getitem__


class TextCache:
    """A cache of texts by number. It stays valid, because committed texts never change."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {NO_TEXT: ""}

    def load(self, connection: Connection, numbers: Collection[int]) -> None:
        """Load the texts of all these numbers."""
        unknown = [number for number in dict.fromkeys(numbers) if number not in self._known]
        for some in split_batches(unknown, BATCH_SIZE):
            for seq, key, long in connection.execute(select(texts).where(texts.c.seq.in_(some))):
                self._known[seq] = key if long is None else long

    def __getitem__(self, number: int) -> str:
        """Return the text of a loaded number."""
        return self._known[number]


def find_text_number(connection: Connection, text: str) -> int | None:
    """Return the number of one text, None if the ledger does not have it."""
    return next(iter(find_text_numbers(connection, [text])), None)


def find_text_numbers(connection: Connection, texts: Iterable[str]) -> list[int]:
    """Return the numbers of the texts that the ledger has, in no order."""
    return list(_found(connection, [make_key(text) for text in texts]).values())


def split_batches(things: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the items in lists of at most `size`."""
    left = iter(things)
    while some := list(islice(left, size)):
        yield some


def _found(connection: Connection, keys: list[str]) -> dict[str, int]:
    query = select(texts.c.key, texts.c.seq).where(texts.c.key.in_(keys))
    return {row.key: row.seq for row in connection.execute(query)}


def _row(text: str) -> dict[str, Any]:
    return {"key": make_key(text), "long": text if len(text) > MAX_KEY_LENGTH else None}


def make_key(text: str) -> str:
    """Return what a text is found by: itself, or the digest of a long one."""
    return text if len(text) <= MAX_KEY_LENGTH else f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
