"""`assay show NODE`: what a node must be, and the file and line that each value comes from.

`assay specs learn NODE`: draft a node spec from a good node's evidence.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.workspace import FleetDir, OutputFormat, Workspace
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from assay.fleet.effective_values import EffectiveValue

show_app = typer.Typer(add_completion=False, help="Show what a node must be, and which line says so.")


@show_app.command()
def show(
    node: Annotated[str, typer.Argument(metavar="NODE")],
    path: Annotated[str, typer.Argument(metavar="[PATH]", help="Only this part: limits, gpus.model, bmc …")] = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Show a node's effective spec: variables, node spec, firmware and profile, each value with its file and line."""
    from assay.fleet.effective_values import list_effective_values
    from assay.fleet.fleet_loader import build_fleet, read_draft

    desk = Workspace(fleet.resolve())
    draft = read_draft(desk.root, desk.overlays)
    values = [value for value in list_effective_values(draft, build_fleet(draft), node) if _is_below_path(value, path)]
    if not values:
        raise AssayError(f"nothing of {node} is called {path}", fix=f"`assay show {node}` shows everything")
    typer.echo(format_spec_json(node, values) if form == "json" else format_spec_text(values))


def _is_below_path(value: EffectiveValue, path: str) -> bool:
    return not path or value.dotted == path or value.dotted.startswith(f"{path}.")


def format_spec_json(node: str, values: list[EffectiveValue]) -> str:
    """Return the values that hold nothing further, as one JSON document."""
    leaves = [value for value in values if not value.has_children]
    plain = [{"of": one.document, "path": one.dotted, "value": one.data, "where": one.where} for one in leaves]
    return json.dumps({"node": node, "values": plain}, indent=1, ensure_ascii=False, default=str)


def format_spec_text(values: list[EffectiveValue]) -> str:
    """Return the values as YAML, each with the place that says it as a comment; one line for what one line says."""
    lines: list[tuple[str, str]] = []
    above = len(values[0].path) - 1
    for number, value in enumerate(values):
        if number == 0 or value.document != values[number - 1].document:
            lines += [("", ""), (f"# {value.document}", "")][not lines :]
        if not _is_shown_above(values, number):
            lines.append((f"{'  ' * (len(value.path) - 1 - above)}{_entry(values, number)}", value.where))
    width = min(max(len(text) for text, where in lines if where), 80)
    return "\n".join(f"{text:{width}}  # {where}" if where else text for text, where in lines)


def _entry(values: list[EffectiveValue], number: int) -> str:
    value = values[number]
    name = "-" if isinstance(value.path[-1], int) else f"{value.path[-1]}:"
    return (
        name if value.has_children and not _on_one_line(values, number) else f"{name} {_format_yaml_flow(value.data)}"
    )


def _is_shown_above(values: list[EffectiveValue], number: int) -> bool:
    """Whether an entry is told already, with the one above it that stands on one line."""
    path = values[number].path
    for other in range(number - 1, -1, -1):
        above = values[other]
        if above.path == path[: len(above.path)] and above.document == values[number].document:
            if _on_one_line(values, other):
                return True
        elif len(above.path) <= 1:
            break
    return False


def _on_one_line(values: list[EffectiveValue], number: int) -> bool:
    """Whether one line of one file says an entry with all that it holds."""
    value = values[number]
    for below in values[number + 1 :]:
        if below.document != value.document or below.path[: len(value.path)] != value.path:
            break
        if below.where != value.where:
            return False
    return value.has_children


def _format_yaml_flow(data: Any) -> str:
    """Return data as YAML writes it on one line."""
    import yaml

    written: str = yaml.safe_dump(data, allow_unicode=True, width=10_000, default_flow_style=True, sort_keys=False)
    return written.removesuffix("\n").removesuffix("\n...")


specs_app = typer.Typer(add_completion=False, no_args_is_help=True, help="Write specs from what is there.")


@specs_app.callback()
def _specs() -> None:
    """Write specs from what is there."""


@specs_app.command()
def learn(node: Annotated[str, typer.Argument(metavar="NODE")], fleet: FleetDir = Path()) -> None:
    """Draft the spec of a good node from its last evidence, on stdout, for a person to review.

    Exit 0: drafted; 2: there is no evidence.
    """
    from assay.fleet.repository_tree import WorkingFolder
    from assay.fleet.suite_source import parse_suites
    from assay.observe.evidence_store import EvidenceStore
    from assay.observe.spec_learning.observed_node import ObservedNode
    from assay.observe.spec_learning.spec_draft import draft_node_spec

    desk = Workspace(fleet.resolve())
    declared = desk.fleet.nodes.get(node)
    if declared is None:
        raise AssayError(f"the inventory has no node {node}", where=str(desk.root / "inventory"))
    evidence = EvidenceStore(desk.evidence_dir).latest(node)
    if evidence is None:
        raise AssayError(f"there is no evidence of {node}", where=str(desk.evidence_dir), fix=f"`assay observe {node}`")
    seen = ObservedNode(evidence, declared, desk.fleet.node_specs.get(declared.spec), desk.fleet.bundles)
    wanted = {limit.name for limit in parse_suites(WorkingFolder(desk.root)).limits}
    typer.echo(draft_node_spec(seen, wanted), nl=False)
