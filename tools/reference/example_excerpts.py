"""Short examples of specs, cut from the files of a fleet repository."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_origin

import yaml
from pydantic import BaseModel

from assay.declare.repository.tree import MAX_FILE_BYTES, WorkingFolder
from assay.declare.yaml import parse_yaml
from assay.model.specs.spec_document import load_spec_model

MAX_ENTRIES = 2
"""So many entries of a list, and of a mapping by name, stay in an excerpt."""
MAX_TEXT = 90
LINE_WIDTH = 110


@cache
def list_spec_files(root: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return path and content of every spec below `root`, in the order of paths."""
    tree = WorkingFolder(root)
    paths = [path for path in tree.files("specs") if path.endswith(".yaml")]
    return [(path, parse_yaml(tree.read(path, MAX_FILE_BYTES), path).data) for path in paths]


def find_example(root: Path, kind: str) -> tuple[str, str]:
    """Return the path of the spec of this kind with most keys, and its text, shortened. Raises LookupError."""
    specs = [(path, spec) for path, spec in list_spec_files(root) if spec.get("kind") == kind]
    if not specs:
        raise LookupError(f"no spec of the kind {kind} below {root}")
    path, spec = max(specs, key=lambda item: len(item[1]))
    return path, _dump(_shorten(spec, load_spec_model(kind)))


def find_inventory_example(root: Path) -> tuple[str, str]:
    """Return the path of the first inventory file, and its text with one host of each group."""
    path = WorkingFolder(root).files("inventory")[0]
    groups = parse_yaml(WorkingFolder(root).read(path, MAX_FILE_BYTES), path).data
    shortened = {name: _shorten_group(group) for name, group in list(groups.items())[:MAX_ENTRIES]}
    return path, _dump(shortened)


def _shorten_group(group: dict[str, Any]) -> dict[str, Any]:
    hosts = group.get("hosts") or {}
    return {**group, "hosts": dict(list(hosts.items())[:1])} if hosts else group


def _shorten(value: Any, annotation: Any) -> Any:
    """Return a value with fewer entries. The fields of a model all stay; other mappings and lists are cut."""
    if isinstance(value, dict):
        models = [model for model in _list_types(annotation) if issubclass(model, BaseModel)]
        if models and not _is_mapping(annotation):
            fields = {name: field.annotation for model in models for name, field in model.model_fields.items()}
            return {name: _shorten(part, fields.get(name)) for name, part in value.items()}
        return {name: _shorten(part, _inner(annotation)) for name, part in list(value.items())[:MAX_ENTRIES]}
    if isinstance(value, list):
        return [_shorten(part, _inner(annotation)) for part in value[:MAX_ENTRIES]]
    return f"{value[: MAX_TEXT - 1]}…" if isinstance(value, str) and len(value) > MAX_TEXT else value


def _is_mapping(annotation: Any) -> bool:
    parts = [annotation, *get_args(annotation)]
    return any(get_origin(part) is dict for part in parts)


def _inner(annotation: Any) -> Any:
    """Return the annotation of the entries of a list or mapping, also of one that may be absent."""
    for part in (annotation, *get_args(annotation)):
        if get_origin(part) in (dict, list):
            return get_args(part)[-1]
    return None


def _list_types(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type):
        yield annotation
    elif get_origin(annotation) not in (dict, list):
        for part in get_args(annotation):
            yield from _list_types(part)


class _Dumper(yaml.SafeDumper):
    """Writes lists below a key indented, as the example's files are."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless and False)


def _dump(value: Any) -> str:
    return yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=LINE_WIDTH, default_flow_style=None
    )
