"""What a node must be in the end, all layers laid over each other, and which file and line says each part of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from assay.fleet.draft import Draft, HostEntry
from assay.fleet.groups import Layer, origin
from assay.fleet.layers import Said, entries_of
from assay.fleet.telltale import shape_of
from assay.fleet.variables import NodeVariables
from assay.fleet.violations import SECRET
from assay.model.errors import Trouble
from assay.model.fleet import Fleet
from assay.model.spec import Spec

HIDDEN = "(not shown)"
DEFAULT = "default"
REFERENCES = ("env", "file", "command")


@dataclass(frozen=True, slots=True)
class Value:
    """One entry: the document that it belongs to (`Node/n0007`, `NodeSpec/hgx-h100`), its path, data and place.

    `where` is `file:line`, or `default` for what nobody wrote.
    """

    document: str
    path: tuple[Any, ...]
    data: Any
    where: str

    @property
    def dotted(self) -> str:
        """The path as people write it."""
        return ".".join(map(str, self.path))

    @property
    def holds(self) -> bool:
        """Whether entries of its own follow it."""
        return isinstance(self.data, dict | list) and bool(self.data)


def effective(draft: Draft, fleet: Fleet, name: str) -> list[Value]:
    """Return all that is declared of a node, parents before what they hold. Raises Trouble for an unknown one."""
    host = next((host for host in draft.hosts if host.name == name), None)
    if host is None:
        raise Trouble(f"there is no node {name}", fix="`assay status` lists the nodes")
    specs: list[Spec] = [fleet.spec_of(name), fleet.bundle_of(name), fleet.profile_of(name)]
    return [*_of_node(host), *(value for spec in specs for value in _of_spec(draft, spec))]


def _of_node(host: HostEntry) -> Iterator[Value]:
    document = f"Node/{host.name}"
    for name, content in host.variables.items():
        layer = origin(host.layers, name)
        if layer is None:
            continue
        if SECRET.search(name):
            yield Value(document, (name,), _hidden(content), layer.document.where((*layer.path, name)))
            continue
        for path, data, where in entries_of((name,), [_said(layer, name)]):
            yield Value(document, path, _covered(str(path[-1]), data), where)
    yield from _defaults(document, NodeVariables, host.variables)


def _said(layer: Layer, name: str) -> Said:
    """Return a variable as its layer says it."""
    said: Said | None = Said(layer.document.data, layer.document.marks, layer.document)
    for step in (*layer.path, name):
        said = said.below(step) if said else None
    return said or Said(layer.variables[name], 0, layer.document)


def _covered(name: str, data: Any) -> Any:
    """Return data without what may be a secret, by the name it stands under or by its form."""
    if isinstance(data, Mapping):
        return {key: _covered(str(key), value) for key, value in data.items()}
    if isinstance(data, list):
        return [_covered(name, value) for value in data]
    return HIDDEN if isinstance(data, str) and (SECRET.search(name) or shape_of(data)) else data


def _hidden(content: Any) -> Any:
    """Return of what may be a secret only where it is found."""
    references = {key: content[key] for key in REFERENCES if key in content} if isinstance(content, Mapping) else {}
    return references or HIDDEN


def _of_spec(draft: Draft, spec: Spec) -> Iterator[Value]:
    document = f"{spec.kind}/{spec.name}"
    for path, data, where in draft.files[document].entries():
        if path:
            yield Value(document, path, data, where)
    yield from _defaults(document, type(spec), spec.model_fields_set)


def _defaults(document: str, model: type[BaseModel], said: Any) -> Iterator[Value]:
    """Yield what is taken for granted where nobody says it. What is empty says nothing."""
    for name, field in model.model_fields.items():
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        if isinstance(default, BaseModel):
            default = default.model_dump(mode="json", exclude_defaults=True)
        if name not in said and default:
            yield Value(document, (name,), default, DEFAULT)
