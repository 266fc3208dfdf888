"""The effective values of a node: all layers of variables and specs merged, each value with its file and line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from assay.declare.declared_hosts import HostDeclaration
from assay.declare.group_variables import VariableLayer, find_deciding_layer
from assay.declare.repository.repository_draft import RepositoryDraft
from assay.declare.secret_detection import find_secret_shape
from assay.declare.spec_inheritance import DeclaredValue, walk_entries
from assay.declare.validation_problems import SECRET_NAME
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.specs.node_settings import NodeVariables
from assay.model.specs.spec_document import SpecDocument

HIDDEN_VALUE = "(not shown)"
DEFAULT_ORIGIN = "default"
REFERENCE_KEYS = ("env", "file", "command")


@dataclass(frozen=True, slots=True)
class EffectiveValue:
    """One entry of a document (`Node/n0007`, `NodeSpec/hgx-h100`): its path, its data and where it is written.

    `where` is `file:line`, or `default` for a model's default.
    """

    document: str
    path: tuple[Any, ...]
    data: Any
    where: str

    @property
    def dotted(self) -> str:
        """The path with dots, such as `limits.pcie_width.value`."""
        return ".".join(map(str, self.path))

    @property
    def has_children(self) -> bool:
        """Whether it is a mapping or list with entries."""
        return isinstance(self.data, dict | list) and bool(self.data)


def list_effective_values(draft: RepositoryDraft, fleet: Fleet, name: str) -> list[EffectiveValue]:
    """Return everything that is declared for a node, parents before children. Raises AssayError for an unknown node."""
    host = next((host for host in draft.hosts if host.name == name), None)
    if host is None:
        raise AssayError(f"there is no node {name}", fix="`assay status` lists the nodes")
    specs: list[SpecDocument] = [fleet.spec_of(name), fleet.bundle_of(name), fleet.profile_of(name)]
    return [*_node_values(host), *(value for spec in specs for value in _spec_values(draft, spec))]


def _node_values(host: HostDeclaration) -> Iterator[EffectiveValue]:
    document = f"Node/{host.name}"
    for name, content in host.variables.items():
        layer = find_deciding_layer(host.layers, name)
        if layer is None:
            continue
        if SECRET_NAME.search(name):
            yield EffectiveValue(
                document, (name,), _show_reference_only(content), layer.document.where((*layer.path, name))
            )
            continue
        for path, data, where in walk_entries((name,), [_declared_value(layer, name)]):
            yield EffectiveValue(document, path, _redact_data(str(path[-1]), data), where)
    yield from _default_values(document, NodeVariables, host.variables)


def _declared_value(layer: VariableLayer, name: str) -> DeclaredValue:
    """Return a variable of a layer with its position."""
    declared: DeclaredValue | None = DeclaredValue(layer.document.data, layer.document.marks, layer.document)
    for step in (*layer.path, name):
        declared = declared.child(step) if declared else None
    return declared or DeclaredValue(layer.variables[name], 0, layer.document)


def _redact_data(name: str, data: Any) -> Any:
    """Return data with possible secrets hidden. A secret is recognised by its name or its shape."""
    if isinstance(data, Mapping):
        return {key: _redact_data(str(key), value) for key, value in data.items()}
    if isinstance(data, list):
        return [_redact_data(name, value) for value in data]
    return HIDDEN_VALUE if isinstance(data, str) and (SECRET_NAME.search(name) or find_secret_shape(data)) else data


def _show_reference_only(content: Any) -> Any:
    """Return the reference in a credential, and nothing else of it."""
    references = {key: content[key] for key in REFERENCE_KEYS if key in content} if isinstance(content, Mapping) else {}
    return references or HIDDEN_VALUE


def _spec_values(draft: RepositoryDraft, spec: SpecDocument) -> Iterator[EffectiveValue]:
    document = f"{spec.kind}/{spec.name}"
    for path, data, where in draft.spec_files[document].list_entries():
        if path:
            yield EffectiveValue(document, path, data, where)
    yield from _default_values(document, type(spec), spec.model_fields_set)


def _default_values(document: str, model: type[BaseModel], declared: Any) -> Iterator[EffectiveValue]:
    """Yield the defaults of fields that are not `declared`, except empty ones."""
    for name, field in model.model_fields.items():
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        if isinstance(default, BaseModel):
            default = default.model_dump(mode="json", exclude_defaults=True)
        if name not in declared and default:
            yield EffectiveValue(document, (name,), default, DEFAULT_ORIGIN)
