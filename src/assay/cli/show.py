"""`assay show NODE`: what a node must be, and the file and line that each value comes from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.desk import Desk, FleetDir, Format
from assay.model.errors import Trouble

if TYPE_CHECKING:
    from assay.fleet.effective import Value

app = typer.Typer(add_completion=False, help="Show what a node must be, and which line says so.")


@app.command()
def show(
    node: Annotated[str, typer.Argument(metavar="NODE")],
    path: Annotated[str, typer.Argument(metavar="[PATH]", help="Only this part: limits, gpus.model, bmc …")] = "",
    fleet: FleetDir = Path(),
    form: Format = "text",
) -> None:
    """Show a node's effective spec: variables, node spec, firmware and profile, each value with its file and line."""
    from assay.fleet.effective import effective
    from assay.fleet.load import draft_of, fleet_of

    desk = Desk(fleet.resolve())
    draft = draft_of(desk.root, desk.overlays)
    values = [value for value in effective(draft, fleet_of(draft), node) if _asked(value, path)]
    if not values:
        raise Trouble(f"nothing of {node} is called {path}", fix=f"`assay show {node}` shows everything")
    typer.echo(as_json(node, values) if form == "json" else as_text(values))


def _asked(value: Value, path: str) -> bool:
    return not path or value.dotted == path or value.dotted.startswith(f"{path}.")


def as_json(node: str, values: list[Value]) -> str:
    """Return the values that hold nothing further, as one JSON document."""
    leaves = [value for value in values if not value.holds]
    plain = [{"of": one.document, "path": one.dotted, "value": one.data, "where": one.where} for one in leaves]
    return json.dumps({"node": node, "values": plain}, indent=1, ensure_ascii=False, default=str)


def as_text(values: list[Value]) -> str:
    """Return the values as YAML, each with the place that says it as a comment; one line for what one line says."""
    lines: list[tuple[str, str]] = []
    above = len(values[0].path) - 1
    for number, value in enumerate(values):
        if number == 0 or value.document != values[number - 1].document:
            lines += [("", ""), (f"# {value.document}", "")][not lines :]
        if not _told(values, number):
            lines.append((f"{'  ' * (len(value.path) - 1 - above)}{_entry(values, number)}", value.where))
    width = min(max(len(text) for text, where in lines if where), 80)
    return "\n".join(f"{text:{width}}  # {where}" if where else text for text, where in lines)


def _entry(values: list[Value], number: int) -> str:
    value = values[number]
    name = "-" if isinstance(value.path[-1], int) else f"{value.path[-1]}:"
    return name if value.holds and not _on_one_line(values, number) else f"{name} {_flow(value.data)}"


def _told(values: list[Value], number: int) -> bool:
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


def _on_one_line(values: list[Value], number: int) -> bool:
    """Whether one line of one file says an entry with all that it holds."""
    value = values[number]
    for below in values[number + 1 :]:
        if below.document != value.document or below.path[: len(value.path)] != value.path:
            break
        if below.where != value.where:
            return False
    return value.holds


def _flow(data: Any) -> str:
    """Return data as YAML writes it on one line."""
    import yaml

    written: str = yaml.safe_dump(data, allow_unicode=True, width=10_000, default_flow_style=True, sort_keys=False)
    return written.removesuffix("\n").removesuffix("\n...")
