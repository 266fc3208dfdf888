"""One spec laid over another: what results, and which file says what.

The rule is JSON Merge Patch (RFC 7396): mappings merge key by key, `null` takes a key out, and anything else, lists
too, stands in place of what was there. Only a `null` for a key that is not there stays, and so is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from assay.fleet.yaml_builder import YamlMarks
from assay.fleet.yaml_document import YamlDocument

NOT_INHERITED_KEYS = ("name", "extends", "description")


@dataclass(frozen=True, slots=True)
class DeclaredValue:
    """One entry as a document says it: the data, where it and its parts stand, and the document."""

    data: Any
    marks: YamlMarks | int
    document: YamlDocument

    def child(self, step: Any) -> DeclaredValue | None:
        """Return the entry one step down, None where the document says nothing there."""
        if not isinstance(self.marks, YamlMarks) or step not in self.marks.of:
            return None
        if isinstance(self.data, dict) and step not in self.data:
            return None
        return DeclaredValue(self.data[step], self.marks.of[step], self.document)

    @property
    def mark(self) -> int:
        """Its place in the document."""
        return self.marks.at if isinstance(self.marks, YamlMarks) else self.marks


def merge_specs(documents: Sequence[YamlDocument]) -> Any:
    """Return the data of the first document laid over those after it, each over the next."""
    data: Any = {}
    for said in reversed(_layer_roots(documents)):
        data = _merge_patch(data, said.data)
    return data


def _layer_roots(documents: Sequence[YamlDocument]) -> list[DeclaredValue]:
    """Return the whole of each document; what is not inherited counts in the first one only."""
    own, *bases = documents
    inherited = [
        DeclaredValue(
            {key: value for key, value in base.data.items() if key not in NOT_INHERITED_KEYS}, base.marks, base
        )
        for base in bases
    ]
    return [DeclaredValue(own.data, own.marks, own), *inherited]


def _merge_patch(under: Any, over: Any) -> Any:
    if not isinstance(over, dict):
        return over
    merged = dict(under) if isinstance(under, dict) else {}
    for key, value in over.items():
        if value is None and key in merged:
            del merged[key]
        else:
            merged[key] = _merge_patch(merged.get(key), value)
    return merged


def find_entry_position(documents: Sequence[YamlDocument], path: Sequence[Any]) -> tuple[str, int, int]:
    """Return file, line and column of the entry at `path`, or of what is nearest above it."""
    said = _layer_roots(documents)
    for step in path:
        deeper = _children(said, step)
        if not deeper:
            break
        said = deeper
    return said[0].document.at(said[0].mark)


def list_merged_entries(documents: Sequence[YamlDocument]) -> Iterator[tuple[tuple[Any, ...], Any, str]]:
    """Yield path, data and `file:line` of every entry of the result, parents before what they hold."""
    yield from walk_entries((), _layer_roots(documents))


def walk_entries(path: tuple[Any, ...], said: list[DeclaredValue]) -> Iterator[tuple[tuple[Any, ...], Any, str]]:
    """Yield `path` itself and all below it, as layers say them, the nearest first."""
    yield path, said[0].data, said[0].document.line_at(said[0].mark)
    for step in _child_keys(said):
        below = _children(said, step)
        if below and not (below[0].data is None and len(said) > 1):
            yield from walk_entries((*path, step), below)


def _child_keys(said: list[DeclaredValue]) -> list[Any]:
    if isinstance(said[0].data, dict):
        return list(dict.fromkeys(step for one in reversed(_effective_layers(said)) for step in one.data))
    return list(range(len(said[0].data))) if isinstance(said[0].data, list) else []


def _children(said: list[DeclaredValue], step: Any) -> list[DeclaredValue]:
    layers = _effective_layers(said) if isinstance(said[0].data, dict) else said[:1]
    return [below for one in layers if (below := one.child(step)) is not None]


def _effective_layers(said: list[DeclaredValue]) -> list[DeclaredValue]:
    """Return the layers that count: those above the first that is no mapping."""
    end = next((number for number, one in enumerate(said) if not isinstance(one.data, dict)), len(said))
    return said[:end]
