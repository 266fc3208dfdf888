"""`assay show NODE`: the effective values of a node, all layers of variables and specs merged, or its first data.

Each value comes with its file and line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel

from assay.cli.context_line import format_answer
from assay.cli.options import FleetDir, OutputFormat, argument, complete_nodes, option
from assay.cli.workspace import Workspace, require_known
from assay.declare.declared_hosts import HostDeclaration
from assay.declare.group_variables import VariableLayer, find_deciding_layer
from assay.declare.problems import SECRET_NAME
from assay.declare.repository.draft import RepositoryDraft
from assay.declare.secret_detection import find_secret_shape
from assay.declare.spec_reader import DeclaredValue, walk_entries
from assay.model.errors import AssayError
from assay.model.facts import fact, frozen, shown
from assay.model.fleet import Fleet
from assay.model.specs.node_settings import NodeVariables
from assay.model.specs.spec_document import SpecDocument

HIDDEN_VALUE = "(not shown)"
DEFAULT_ORIGIN = "default"
REFERENCE_KEYS = ("env", "file", "command")
COMMENT_COLUMN = 80
"""Comments start at this column at the latest."""


@fact
class EffectiveSpecValue:
    """One value that is declared for a node."""

    of: str
    """The document that it belongs to, such as Node/n0007 or NodeSpec/hgx-h100."""
    path: str
    """Where it is in the document, with dots, such as limits.pcie_width.value."""
    value: Any
    """The value; an empty list or mapping too. A secret is shown as "(not shown)"."""
    where: str
    """The file and line that say it, as `file:line`; "default" if no file does."""


@fact
class CloudInitAnswer:
    """The documents that cloud-init gets when the node boots."""

    meta_data: str = shown("meta-data")
    """The document meta-data, in YAML."""
    user_data: str = shown("user-data")
    """The document user-data: the node's system as declared."""
    vendor_data: str = shown("vendor-data")
    """The document vendor-data: what assay asks of every node."""
    network_config: str | None = shown("network-config", omit=True, default=None)
    """The document network-config; only with a declared network."""


@fact
class ShowAnswer:
    """What a node must be: its variables, node spec, firmware bundle and profile."""

    node: str
    """The name of the node."""
    values: list[EffectiveSpecValue]
    """The innermost values below PATH, in the order of the documents."""


@frozen
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
    bundles = [fleet.bundle_of(name)] if fleet.spec_of(name).firmware else []
    specs: list[SpecDocument] = [fleet.spec_of(name), *bundles, fleet.profile_of(name)]
    return [*_node_values(host), *(value for spec in specs for value in _spec_values(draft, spec))]


def _node_values(host: HostDeclaration) -> Iterator[EffectiveValue]:
    document = f"Node/{host.name}"
    for name, content in host.variables.items():
        layer = find_deciding_layer(host.layers, name)
        if layer is None:
            continue
        if SECRET_NAME.search(name):  # of a credential, the reference and nothing else
            keys = REFERENCE_KEYS if isinstance(content, Mapping) else ()
            reference = {key: content[key] for key in keys if key in content} or HIDDEN_VALUE
            yield EffectiveValue(document, (name,), reference, layer.document.where((*layer.path, name)))
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


def show(
    node: Annotated[str, argument("NODE", "The node.", complete=complete_nodes)],
    path: Annotated[str, argument("PATH", "Only this part, such as limits, gpus.model or bmc.")] = "",
    cloud_init: Annotated[
        bool, option("--cloud-init", "Show the documents that cloud-init gets when the node boots.")
    ] = False,
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Show a node's effective variables, node spec, firmware bundle and profile. Each value has its file and line."""
    if cloud_init:
        typer.echo(format_cloud_init(fleet, node, form))
        return
    from assay.declare.loader import build_fleet, read_draft

    workspace = Workspace(fleet.resolve())
    draft = read_draft(workspace.root, workspace.overlays)
    values = list(list_effective_values(draft, build_fleet(draft), node))
    if path:
        values = [value for value in values if f"{value.dotted}.".startswith(f"{path}.")]
    if not values:
        raise AssayError(f"{node} has no value {path}", fix=f"`assay show {node}` shows all of them")
    typer.echo(format_spec_json(node, values) if form == "json" else format_spec_text(values))


def format_cloud_init(fleet: Path, node: str, form: str) -> str:
    """Return the documents of a node's next start. Raises AssayError for a node that assay does not boot."""
    from assay.act.boot.cloud_init import make_node_boot, render_node_data

    loaded = Workspace(fleet.resolve()).fleet
    require_known([node], loaded.nodes, "node")
    provisioning = loaded.provisioning_of(node)
    if provisioning is None:
        fix = "write a Provisioning for its pool, see docs/day-0.md"
        raise AssayError(f"assay does not boot {node}: no Provisioning names pool {loaded.nodes[node].pool}", fix=fix)
    documents = render_node_data(make_node_boot(loaded, node, provisioning, "ATTEMPT"))
    if form == "json":
        return json.dumps(documents, indent=1)
    return "\n".join(f"# --- {name}\n{text}" for name, text in documents.items()).rstrip("\n")


def format_spec_json(node: str, values: list[EffectiveValue]) -> str:
    """Return the innermost values as one JSON document."""
    leaves = [value for value in values if not value.has_children]
    plain = [EffectiveSpecValue(leaf.document, leaf.dotted, leaf.data, leaf.where) for leaf in leaves]
    return format_answer(ShowAnswer(node, plain), indent=1, ensure_ascii=False, default=str)


def format_spec_text(values: list[EffectiveValue]) -> str:
    """Return the values as YAML, each with its file and line as a comment. A value from one line stays on one line."""
    lines: list[tuple[str, str]] = []
    depth = len(values[0].path) - 1
    flow: EffectiveValue | None = None  # the last one that is shown on one line with all below it, which comes next
    for number, value in enumerate(values):
        if number == 0 or value.document != values[number - 1].document:
            lines += [("", ""), (f"# {value.document}", "")][not lines :]
        if flow and flow.document == value.document and flow.path == value.path[: len(flow.path)]:
            continue
        name = "-" if isinstance(value.path[-1], int) else f"{value.path[-1]}:"
        flow = value if _is_on_one_line(values, number) else None
        text = name if value.has_children and not flow else f"{name} {_format_yaml_flow(value.data)}"
        lines.append((f"{'  ' * (len(value.path) - 1 - depth)}{text}", value.where))
    width = min(max(len(text) for text, where in lines if where), COMMENT_COLUMN)
    return "\n".join(f"{text:{width}}  # {where}" if where else text for text, where in lines)


def _is_on_one_line(values: list[EffectiveValue], number: int) -> bool:
    """Return whether a value with children comes from a single line of a file, with all of them."""
    value = values[number]
    for below in values[number + 1 :]:
        if below.document != value.document or below.path[: len(value.path)] != value.path:
            break
        if below.where != value.where:
            return False
    return value.has_children


def _format_yaml_flow(data: Any) -> str:
    """Return data as one line of YAML."""
    import yaml

    text: str = yaml.safe_dump(data, allow_unicode=True, width=10_000, default_flow_style=True, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")
