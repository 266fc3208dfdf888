"""`assay lab`: the virtual fleet to rehearse on."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from assay.cli.workspace import FleetDir, OutputFormat, Workspace
from assay.model.errors import AssayError

lab_app = typer.Typer(add_completion=False, no_args_is_help=True, help="Run the virtual fleet.")

ScenarioOption = Annotated[Path | None, typer.Option("--scenario", help="Plant the story of this YAML file.")]


@lab_app.command()
def up(fleet: FleetDir = Path(), scenario: ScenarioOption = None) -> None:
    """Make the virtual fleet of this repository and start it; until `down`, every verb talks to it."""
    from assay.lab import process_control
    from assay.lab.process_control import DEFAULT_CLOCK_RATE
    from assay.lab.scenario import load_scenario
    from assay.lab.world import LabWorld

    desk, world = Workspace(fleet.resolve()), LabWorld(Workspace(fleet.resolve()).lab_dir)
    if process_control.find_lab_pid(world):
        raise AssayError("the lab is up already", where=str(world.home), fix="`assay lab down` first")
    story = load_scenario(scenario) if scenario else None
    start, rate = (story.starts_at, story.rate) if story else (datetime.now(UTC), DEFAULT_CLOCK_RATE)
    process_control.delete_lab(desk.data_dir)
    process_control.prepare_lab(desk.fleet, world, start, rate, story)
    process_control.start_lab(world)
    _print_line(
        f"the lab is up: {len(world.nodes())} nodes, {rate:g} lab seconds in a second. {_describe_parts(world)}"
    )


@lab_app.command()
def down(fleet: FleetDir = Path()) -> None:
    """Stop the virtual fleet; its world, the ledger and the evidence stay."""
    from assay.lab import process_control
    from assay.lab.world import LabWorld

    _print_line(
        "the lab is down"
        if process_control.stop_lab(LabWorld(Workspace(fleet.resolve()).lab_dir))
        else "the lab was not up"
    )


@lab_app.command()
def status(fleet: FleetDir = Path(), form: OutputFormat = "text") -> None:
    """Say whether the lab is up, what it is made of, and how its nodes are."""
    from assay.lab import process_control
    from assay.lab.world import LabWorld

    world = LabWorld(Workspace(fleet.resolve()).lab_dir)
    pid = process_control.find_lab_pid(world)
    nodes = [_node_as_json(world, name) for name in world.nodes()]
    if form == "json":
        print(json.dumps({"up": bool(pid), "pid": pid, "parts": _describe_parts(world), "nodes": nodes}))  # noqa: T201 — the answer
    else:
        _print_line(f"the lab is {'up' if pid else 'down'}. {_describe_parts(world)}")
        for node in nodes:
            _print_line(f"  {node['node']}  power {node['power']}, boot {node['boots']}, {node['flashes']} flashes")
    raise typer.Exit(0 if pid else 1)


@lab_app.command("inject")
def inject_fault(
    fault: Annotated[str, typer.Argument(help="e.g. gpu.xid, gpu.thermal, bmc.silent; `list` names them all")],
    node: Annotated[str, typer.Option("--node", help="The node to plant it on.")] = "",
    with_: Annotated[list[str] | None, typer.Option("--with", help="An argument, name=value.")] = None,
    fleet: FleetDir = Path(),
) -> None:
    """Plant a fault in the running lab: `assay lab inject gpu.xid --node n0003 --with gpu=4 --with xid=79`."""
    from assay.lab.faults.injection import FAULTS, inject_fault
    from assay.lab.world import LabWorld

    if fault == "list":
        for name, plant in FAULTS.items():
            _print_line(f"{name:26} {plant.__doc__}")
        return
    inject_fault(
        LabWorld(Workspace(fleet.resolve()).lab_dir), fault, node, dict(_parse_argument(each) for each in with_ or [])
    )
    _print_line(f"planted {fault} on {node}")


@lab_app.command()
def tour(
    scenario: Annotated[Path, typer.Argument(help="The story to play, e.g. scenarios/the-loop.yaml.")],
    fleet: FleetDir = Path(),
) -> None:
    """Start a fresh lab, play a story on it through assay's own commands, and say what came of it."""
    from assay.cli.render.lab_tour import play_scenario

    raise typer.Exit(0 if play_scenario(Workspace(fleet.resolve()), scenario) else 1)


def _node_as_json(world: Any, name: str) -> dict[str, Any]:
    state = world.load(name)
    counts = {"boots": state["boot"]["count"], "flashes": len(state["flashes"])}
    return {"node": name, "power": state["power"]["state"], **counts, "fails": state["fails"]}


def _describe_parts(world: Any) -> str:
    from assay.lab.fabric import cabling
    from assay.lab.nvml import stub_build

    return f"Fabric: {cabling.describe_discovery()}. {stub_build.describe_nvml_source(world.home / 'lib')}."


def _parse_argument(text: str) -> tuple[str, int | float | str]:
    name, mark, content = text.partition("=")
    if not mark:
        raise AssayError(f"{text!r} is no argument", fix="--with name=value")
    for kind in (int, float):
        try:
            return name, kind(content)
        except ValueError:
            continue
    return name, content


def _print_line(text: str) -> None:
    print(text)  # noqa: T201 — the answer
