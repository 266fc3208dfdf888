"""What a node must be in the end, all layers laid over each other, and which file and line says each part of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from assay.fleet.ansible_inventory.group_variables import VariableLayer, find_deciding_layer
from assay.fleet.repository_draft import HostDeclaration, RepositoryDraft
from assay.fleet.secret_detection import find_secret_shape
from assay.fleet.spec_inheritance import DeclaredValue, walk_entries
from assay.fleet.validation_problems import SECRET_NAME
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.specs.node_settings import NodeVariables
from assay.model.specs.spec_document import SpecDocument

HIDDEN_VALUE = "(not shown)"
DEFAULT_ORIGIN = "default"
REFERENCE_KEYS = ("env", "file", "command")


@dataclass(frozen=True, slots=True)
class EffectiveValue:
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
    def has_children(self) -> bool:
        """Whether entries of its own follow it."""
        return isinstance(self.data, dict | list) and bool(self.data)


def list_effective_values(draft: RepositoryDraft, fleet: Fleet, name: str) -> list[EffectiveValue]:
    """Return all that is declared of a node, parents before what they hold. Raises Trouble for an unknown one."""
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
    """Return a variable as its layer says it."""
    said: DeclaredValue | None = DeclaredValue(layer.document.data, layer.document.marks, layer.document)
    for step in (*layer.path, name):
        said = said.child(step) if said else None
    return said or DeclaredValue(layer.variables[name], 0, layer.document)


def _redact_data(name: str, data: Any) -> Any:
    """Return data without what may be a secret, by the name it stands under or by its form."""
    if isinstance(data, Mapping):
        return {key: _redact_data(str(key), value) for key, value in data.items()}
    if isinstance(data, list):
        return [_redact_data(name, value) for value in data]
    return HIDDEN_VALUE if isinstance(data, str) and (SECRET_NAME.search(name) or find_secret_shape(data)) else data


def _show_reference_only(content: Any) -> Any:
    """Return of what may be a secret only where it is found."""
    references = {key: content[key] for key in REFERENCE_KEYS if key in content} if isinstance(content, Mapping) else {}
    return references or HIDDEN_VALUE


def _spec_values(draft: RepositoryDraft, spec: SpecDocument) -> Iterator[EffectiveValue]:
    document = f"{spec.kind}/{spec.name}"
    for path, data, where in draft.spec_files[document].list_entries():
        if path:
            yield EffectiveValue(document, path, data, where)
    yield from _default_values(document, type(spec), spec.model_fields_set)


def _default_values(document: str, model: type[BaseModel], said: Any) -> Iterator[EffectiveValue]:
    """Yield what is taken for granted where nobody says it. What is empty says nothing."""
    for name, field in model.model_fields.items():
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        if isinstance(default, BaseModel):
            default = default.model_dump(mode="json", exclude_defaults=True)
        if name not in said and default:
            yield EffectiveValue(document, (name,), default, DEFAULT_ORIGIN)
