"""Merges a spec with the specs that it extends, and finds which file says what.

The rule is JSON Merge Patch (RFC 7396): mappings merge key by key, `null` removes a key, and any other value, a list
too, replaces the extended one. A `null` for a key that the extended spec lacks stays, so the model refuses it.

The lists of NAMED_LISTS hold parts with a `name`. A mapping over such a list changes its parts by name in the same way:
`{bios: {version: "2"}}` changes one value of one part, `null` removes the part, a new name adds a part at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from assay.declare.yaml_builder import YamlMarks
from assay.declare.yaml_document import YamlDocument

NOT_INHERITED_KEYS = ("name", "extends", "description")
NAMED_LISTS = {"FirmwareBundle": frozenset({"components"}), "NodeSpec": frozenset({"hcas", "nics"})}
"""The fields of each kind whose parts a spec that extends another may change by name."""


@dataclass(frozen=True, slots=True)
class DeclaredValue:
    """One entry of a document: its data, and the positions of the entry and its parts.

    `named_lists`: the entries below whose parts are found by name; `is_named_list`: this is such an entry.
    """

    data: Any
    marks: YamlMarks | int
    document: YamlDocument
    named_lists: frozenset[str] = frozenset()
    is_named_list: bool = False

    def child(self, step: Any) -> DeclaredValue | None:
        """Return the entry one step down, None if the document has none."""
        if not isinstance(self.marks, YamlMarks) or step not in self.marks.entries:
            return None
        if isinstance(self.data, dict) and step not in self.data:
            return None
        is_named_list = step in self.named_lists
        return DeclaredValue(self.data[step], self.marks.entries[step], self.document, is_named_list=is_named_list)

    @property
    def mark(self) -> int:
        """The mark of the entry itself."""
        return self.marks.position if isinstance(self.marks, YamlMarks) else self.marks


def merge_specs(documents: Sequence[YamlDocument]) -> Any:
    """Return the merged data of a document and the documents that it extends, nearest first."""
    data: Any = {}
    for layer in reversed(_layer_roots(documents)):
        data = _merge_patch(data, layer.data, layer.named_lists)
    return data


def _layer_roots(documents: Sequence[YamlDocument]) -> list[DeclaredValue]:
    """Return the root of each document. Keys that are not inherited remain in the first one only."""
    own, *bases = documents
    named_lists = NAMED_LISTS.get(str(own.data.get("kind")), frozenset())
    inherited = [
        DeclaredValue(
            {key: value for key, value in base.data.items() if key not in NOT_INHERITED_KEYS},
            base.marks,
            base,
            named_lists,
        )
        for base in bases
    ]
    return [DeclaredValue(own.data, own.marks, own, named_lists), *inherited]


def _merge_patch(base: Any, patch: Any, named_lists: frozenset[str] = frozenset()) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(base) if isinstance(base, dict) else {}
    for key, value in patch.items():
        if value is None and key in merged:
            del merged[key]
        elif key in named_lists and isinstance(value, dict) and _has_named_parts(merged.get(key)):
            merged[key] = _merge_named_parts(merged[key], value)
        else:
            merged[key] = _merge_patch(merged.get(key), value)
    return merged


def _merge_named_parts(base: list[dict[str, Any]], patch: dict[str, Any]) -> list[Any]:
    parts = {part["name"]: part for part in base}
    merged = _merge_patch(parts, patch)
    added = {
        name: {"name": name, **part} for name, part in merged.items() if name not in parts and isinstance(part, dict)
    }
    return list({**merged, **added}.values())


def _has_named_parts(parts: Any) -> bool:
    """Say whether this is a list of parts that have a name each, and no two the same."""
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        return False
    names = [part.get("name") for part in parts]
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


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
    if (parts := _list_named_parts(layers)) is not None:
        return list(range(len(parts)))
    if isinstance(layers[0].data, dict):
        return list(dict.fromkeys(step for layer in reversed(_effective_layers(layers)) for step in layer.data))
    return list(range(len(layers[0].data))) if isinstance(layers[0].data, list) else []


def _children(layers: list[DeclaredValue], step: Any) -> list[DeclaredValue]:
    if (parts := _list_named_parts(layers)) is not None:
        return parts[step] if isinstance(step, int) and 0 <= step < len(parts) else []
    effective = _effective_layers(layers) if isinstance(layers[0].data, dict) else layers[:1]
    return [child for layer in effective if (child := layer.child(step)) is not None]


def _effective_layers(layers: list[DeclaredValue]) -> list[DeclaredValue]:
    """Return the layers before the first one that is no mapping: those merge."""
    end = next((number for number, layer in enumerate(layers) if not isinstance(layer.data, dict)), len(layers))
    return layers[:end]


def _list_named_parts(layers: list[DeclaredValue]) -> list[list[DeclaredValue]] | None:
    """Return the layers of each part of a list that mappings change by name; None where no mapping does."""
    patches = _effective_layers(layers) if layers[0].is_named_list else []
    if not patches or len(patches) == len(layers) or not _has_named_parts(layers[len(patches)].data):
        return None
    base = layers[len(patches)]
    parts = {part["name"]: [_require_child(base, number)] for number, part in enumerate(base.data)}
    for patch in reversed(patches):
        for name in patch.data:
            child = _require_child(patch, name)
            if name not in parts:
                parts[name] = [_with_name(child, name)]
            elif child.data is None:
                del parts[name]
            else:
                parts[name] = [child, *parts[name]]
        names = [_find_name(part, name) for name, part in parts.items()]
        if len(set(names)) == len(names):
            parts = dict(zip(names, parts.values(), strict=True))
    return list(parts.values())


def _find_name(part: list[DeclaredValue], name: str) -> str:
    """Return the name of a part in the spec so far: a layer may give it another one."""
    return str(next((layer.data["name"] for layer in _effective_layers(part) if "name" in layer.data), name))


def _require_child(entry: DeclaredValue, step: Any) -> DeclaredValue:
    return entry.child(step) or DeclaredValue(entry.data[step], entry.mark, entry.document)


def _with_name(part: DeclaredValue, name: str) -> DeclaredValue:
    """Return a new part with its name, which stands where the part does."""
    if not isinstance(part.data, dict) or "name" in part.data or not isinstance(part.marks, YamlMarks):
        return part
    marks = YamlMarks(part.mark, {"name": part.mark, **part.marks.entries})
    return replace(part, data={"name": name, **part.data}, marks=marks)
