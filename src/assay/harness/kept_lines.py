"""Where values of specs are written, kept by document: a check asks for those of one spec, and a fleet has many."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping

Key = tuple[str, str]


class KeptLines(Mapping[Key, str]):
    """Lines by document and path, as `Fleet.lines` has them. Each document's are unpacked when they are asked for."""

    def __init__(self, packed: Mapping[str, bytes]) -> None:
        self._packed = packed
        self._of: dict[str, dict[str, str]] = {}

    @staticmethod
    def packed(lines: Mapping[Key, str]) -> dict[str, bytes]:
        """Return what makes the same lines again."""
        of: dict[str, dict[str, str]] = {}
        for (document, path), line in lines.items():
            of.setdefault(document, {})[path] = line
        return {document: pickle.dumps(found, 5) for document, found in of.items()}

    def __getitem__(self, key: Key) -> str:
        document, path = key
        return self._lines(document)[path]

    def __iter__(self) -> Iterator[Key]:
        return ((document, path) for document in self._packed for path in self._lines(document))

    def __len__(self) -> int:
        return sum(len(self._lines(document)) for document in self._packed)

    def _lines(self, document: str) -> dict[str, str]:
        if document not in self._of:
            packed = self._packed.get(document)
            self._of[document] = pickle.loads(packed) if packed else {}  # noqa: S301 — part of what `kept` has proved
        return self._of[document]
