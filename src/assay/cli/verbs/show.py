"""`assay show NODE`: the effective spec of a node, with the file and line of each value, or its first data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.completion import complete_nodes
from assay.cli.context_line import format_answer
from assay.cli.name_check import require_known
from assay.cli.options import FleetDir, OutputFormat
from assay.cli.workspace import Workspace
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from assay.cli.answers.declaration_answers import EffectiveSpecValue, ShowAnswer
    from assay.cli.verbs.effective_values import EffectiveValue

show_app = typer.Typer(add_completion=False)

COMMENT_COLUMN = 80
"""Comments start at this column at the latest."""


@show_app.command()
def show(
    node: Annotated[
        str, typer.Argument(metavar="NODE", autocompletion=complete_nodes, help="The node.", show_default=False)
    ],
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="Only this part, such as limits, gpus.model or bmc.")
    ] = "",
    cloud_init: Annotated[
        bool, typer.Option("--cloud-init", help="Show the documents that cloud-init gets when the node boots.")
    ] = False,
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Show a node's effective variables, node spec, firmware bundle and profile. Each value has its file and line."""
    if cloud_init:
        typer.echo(format_cloud_init(fleet, node, form))
        return
    from assay.cli.verbs.effective_values import list_effective_values
    from assay.declare.fleet_loader import build_fleet, read_draft

    workspace = Workspace(fleet.resolve())
    draft = read_draft(workspace.root, workspace.overlays)
    values = [value for value in list_effective_values(draft, build_fleet(draft), node) if _is_below_path(value, path)]
    if not values:
        raise AssayError(f"{node} has no value {path}", fix=f"`assay show {node}` shows all of them")
    typer.echo(format_spec_json(node, values) if form == "json" else format_spec_text(values))


def format_cloud_init(fleet: Path, node: str, form: str) -> str:
    """Return the documents of a node's next start. Raises AssayError for a node that assay does not boot."""
    from assay.act.boot.node_data import make_node_boot, render_node_data

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


def _is_below_path(value: EffectiveValue, path: str) -> bool:
    return not path or value.dotted == path or value.dotted.startswith(f"{path}.")


def format_spec_json(node: str, values: list[EffectiveValue]) -> str:
    """Return the innermost values as one JSON document."""
    leaves = [value for value in values if not value.has_children]
    plain: list[EffectiveSpecValue] = [
        {"of": leaf.document, "path": leaf.dotted, "value": leaf.data, "where": leaf.where} for leaf in leaves
    ]
    answer: ShowAnswer = {"node": node, "values": plain}
    return format_answer(answer, indent=1, ensure_ascii=False, default=str)


def format_spec_text(values: list[EffectiveValue]) -> str:
    """Return the values as YAML, each with its file and line as a comment. A value from one line stays on one line."""
    lines: list[tuple[str, str]] = []
    depth = len(values[0].path) - 1
    for number, value in enumerate(values):
        if number == 0 or value.document != values[number - 1].document:
            lines += [("", ""), (f"# {value.document}", "")][not lines :]
        if not _is_shown_above(values, number):
            lines.append((f"{'  ' * (len(value.path) - 1 - depth)}{_format_entry(values, number)}", value.where))
    width = min(max(len(text) for text, where in lines if where), COMMENT_COLUMN)
    return "\n".join(f"{text:{width}}  # {where}" if where else text for text, where in lines)


def _format_entry(values: list[EffectiveValue], number: int) -> str:
    value = values[number]
    name = "-" if isinstance(value.path[-1], int) else f"{value.path[-1]}:"
    if value.has_children and not _is_on_one_line(values, number):
        return name
    return f"{name} {_format_yaml_flow(value.data)}"


def _is_shown_above(values: list[EffectiveValue], number: int) -> bool:
    """Return whether a value is part of an earlier one that is shown on one line."""
    path = values[number].path
    for earlier in range(number - 1, -1, -1):
        above = values[earlier]
        if above.path == path[: len(above.path)] and above.document == values[number].document:
            if _is_on_one_line(values, earlier):
                return True
        elif len(above.path) <= 1:
            break
    return False


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
