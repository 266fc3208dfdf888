"""Merges a spec with the specs that it extends, and finds which file says what.

The rule is JSON Merge Patch (RFC 7396): mappings merge key by key, `null` removes a key, and any other value, a list
too, replaces the extended one. A `null` for a key that the extended spec lacks stays, so the model refuses it.
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
    """One entry of a document: its data, and the positions of the entry and its parts."""

    data: Any
    marks: YamlMarks | int
    document: YamlDocument

    def child(self, step: Any) -> DeclaredValue | None:
        """Return the entry one step down, None if the document has none."""
        if not isinstance(self.marks, YamlMarks) or step not in self.marks.entries:
            return None
        if isinstance(self.data, dict) and step not in self.data:
            return None
        return DeclaredValue(self.data[step], self.marks.entries[step], self.document)

    @property
    def mark(self) -> int:
        """The mark of the entry itself."""
        return self.marks.position if isinstance(self.marks, YamlMarks) else self.marks


def merge_specs(documents: Sequence[YamlDocument]) -> Any:
    """Return the merged data of a document and the documents that it extends, nearest first."""
    data: Any = {}
    for layer in reversed(_layer_roots(documents)):
        data = _merge_patch(data, layer.data)
    return data


def _layer_roots(documents: Sequence[YamlDocument]) -> list[DeclaredValue]:
    """Return the root of each document. Keys that are not inherited remain in the first one only."""
    own, *bases = documents
    inherited = [
        DeclaredValue(
            {key: value for key, value in base.data.items() if key not in NOT_INHERITED_KEYS}, base.marks, base
        )
        for base in bases
    ]
    return [DeclaredValue(own.data, own.marks, own), *inherited]


def _merge_patch(base: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(base) if isinstance(base, dict) else {}
    for key, value in patch.items():
        if value is None and key in merged:
            del merged[key]
        else:
            merged[key] = _merge_patch(merged.get(key), value)
    return merged


def find_entry_position(documents: Sequence[YamlDocument], path: Sequence[Any]) -> tuple[str, int, int]:
    """Return file, line and column of the entry at `path`, or of its nearest parent that exists."""
    layers = _layer_roots(documents)
    for step in path:
        below = _children(layers, step)
        if not below:
            break
        layers = below
    return layers[0].document.locate_mark(layers[0].mark)


def list_merged_entries(documents: Sequence[YamlDocument]) -> Iterator[tuple[tuple[Any, ...], Any, str]]:
    """Yield path, data and `file:line` of every entry of the merged spec, parents before children."""
    yield from walk_entries((), _layer_roots(documents))


def walk_entries(path: tuple[Any, ...], layers: list[DeclaredValue]) -> Iterator[tuple[tuple[Any, ...], Any, str]]:
    """Yield path, data and `file:line` of the entry at `path` and of everything below it. The first layer wins."""
    yield path, layers[0].data, layers[0].document.line_at(layers[0].mark)
    for step in _child_keys(layers):
        below = _children(layers, step)
        if below and not (below[0].data is None and len(layers) > 1):
            yield from walk_entries((*path, step), below)


def _child_keys(layers: list[DeclaredValue]) -> list[Any]:
    if isinstance(layers[0].data, dict):
        return list(dict.fromkeys(step for layer in reversed(_effective_layers(layers)) for step in layer.data))
    return list(range(len(layers[0].data))) if isinstance(layers[0].data, list) else []


def _children(layers: list[DeclaredValue], step: Any) -> list[DeclaredValue]:
    effective = _effective_layers(layers) if isinstance(layers[0].data, dict) else layers[:1]
    return [child for layer in effective if (child := layer.child(step)) is not None]


def _effective_layers(layers: list[DeclaredValue]) -> list[DeclaredValue]:
    """Return the layers before the first one that is no mapping: those merge."""
    end = next((number for number, layer in enumerate(layers) if not isinstance(layer.data, dict)), len(layers))
    return layers[:end]
