"""One spec laid over another: what results, and which file says what.

The rule is JSON Merge Patch (RFC 7396): mappings merge key by key, `null` takes a key out, and anything else, lists
too, stands in place of what was there. Only a `null` for a key that is not there stays, and so is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from assay.fleet.document import Document
from assay.fleet.marks import Marks

NOT_INHERITED = ("name", "extends", "description")


@dataclass(frozen=True, slots=True)
class Said:
    """One entry as a document says it: the data, where it and its parts stand, and the document."""

    data: Any
    marks: Marks | int
    document: Document

    def below(self, step: Any) -> Said | None:
        """Return the entry one step down, None where the document says nothing there."""
        if not isinstance(self.marks, Marks) or step not in self.marks.of:
            return None
        if isinstance(self.data, dict) and step not in self.data:
            return None
        return Said(self.data[step], self.marks.of[step], self.document)

    @property
    def at(self) -> int:
        """Its place in the document."""
        return self.marks.at if isinstance(self.marks, Marks) else self.marks


def layered(documents: Sequence[Document]) -> Any:
    """Return the data of the first document laid over those after it, each over the next."""
    data: Any = {}
    for said in reversed(_said(documents)):
        data = _patched(data, said.data)
    return data


def _said(documents: Sequence[Document]) -> list[Said]:
    """Return the whole of each document; what is not inherited counts in the first one only."""
    own, *bases = documents
    inherited = [
        Said({key: value for key, value in base.data.items() if key not in NOT_INHERITED}, base.marks, base)
        for base in bases
    ]
    return [Said(own.data, own.marks, own), *inherited]


def _patched(under: Any, over: Any) -> Any:
    if not isinstance(over, dict):
        return over
    merged = dict(under) if isinstance(under, dict) else {}
    for key, value in over.items():
        if value is None and key in merged:
            del merged[key]
        else:
            merged[key] = _patched(merged.get(key), value)
    return merged


def place(documents: Sequence[Document], path: Sequence[Any]) -> tuple[str, int, int]:
    """Return file, line and column of the entry at `path`, or of what is nearest above it."""
    said = _said(documents)
    for step in path:
        deeper = _below(said, step)
        if not deeper:
            break
        said = deeper
    return said[0].document.at(said[0].at)


def entries(documents: Sequence[Document]) -> Iterator[tuple[tuple[Any, ...], Any, str]]:
    """Yield path, data and `file:line` of every entry of the result, parents before what they hold."""
    yield from entries_of((), _said(documents))


def entries_of(path: tuple[Any, ...], said: list[Said]) -> Iterator[tuple[tuple[Any, ...], Any, str]]:
    """Yield `path` itself and all below it, as layers say them, the nearest first."""
    yield path, said[0].data, said[0].document.line_at(said[0].at)
    for step in _steps(said):
        below = _below(said, step)
        if below and not (below[0].data is None and len(said) > 1):
            yield from entries_of((*path, step), below)


def _steps(said: list[Said]) -> list[Any]:
    if isinstance(said[0].data, dict):
        return list(dict.fromkeys(step for one in reversed(_mappings(said)) for step in one.data))
    return list(range(len(said[0].data))) if isinstance(said[0].data, list) else []


def _below(said: list[Said], step: Any) -> list[Said]:
    layers = _mappings(said) if isinstance(said[0].data, dict) else said[:1]
    return [below for one in layers if (below := one.below(step)) is not None]


def _mappings(said: list[Said]) -> list[Said]:
    """Return the layers that count: those above the first that is no mapping."""
    end = next((number for number, one in enumerate(said) if not isinstance(one.data, dict)), len(said))
    return said[:end]
