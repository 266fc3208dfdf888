"""`assay lab`: the virtual fleet to rehearse on."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from assay.cli.desk import Desk, FleetDir, Format
from assay.model.errors import Trouble

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Run the virtual fleet.")

Story = Annotated[Path | None, typer.Option("--scenario", help="Plant the story of this YAML file.")]


@app.command()
def up(fleet: FleetDir = Path(), scenario: Story = None) -> None:
    """Make the virtual fleet of this repository and start it; until `down`, every verb talks to it."""
    from assay.lab import keeper
    from assay.lab.build import RATE
    from assay.lab.scenario import load_scenario
    from assay.lab.world import World

    desk, world = Desk(fleet.resolve()), World(Desk(fleet.resolve()).lab)
    if keeper.running(world):
        raise Trouble("the lab is up already", where=str(world.home), fix="`assay lab down` first")
    story = load_scenario(scenario) if scenario else None
    start, rate = (story.starts_at, story.rate) if story else (datetime.now(UTC), RATE)
    keeper.clear(desk.home)
    keeper.prepare(desk.fleet, world, start, rate, story)
    keeper.start(world)
    _say(f"the lab is up: {len(world.nodes())} nodes, {rate:g} lab seconds in a second. {_parts(world)}")


@app.command()
def down(fleet: FleetDir = Path()) -> None:
    """Stop the virtual fleet; its world, the ledger and the evidence stay."""
    from assay.lab import keeper
    from assay.lab.world import World

    _say("the lab is down" if keeper.stop(World(Desk(fleet.resolve()).lab)) else "the lab was not up")


@app.command()
def status(fleet: FleetDir = Path(), form: Format = "text") -> None:
    """Say whether the lab is up, what it is made of, and how its nodes are."""
    from assay.lab import keeper
    from assay.lab.world import World

    world = World(Desk(fleet.resolve()).lab)
    pid = keeper.running(world)
    nodes = [_node(world, name) for name in world.nodes()]
    if form == "json":
        print(json.dumps({"up": bool(pid), "pid": pid, "parts": _parts(world), "nodes": nodes}))  # noqa: T201 — the answer
    else:
        _say(f"the lab is {'up' if pid else 'down'}. {_parts(world)}")
        for node in nodes:
            _say(f"  {node['node']}  power {node['power']}, boot {node['boots']}, {node['flashes']} flashes")
    raise typer.Exit(0 if pid else 1)


@app.command("inject")
def inject_(
    fault: Annotated[str, typer.Argument(help="e.g. gpu.xid, gpu.thermal, bmc.silent; `list` names them all")],
    node: Annotated[str, typer.Option("--node", help="The node to plant it on.")] = "",
    with_: Annotated[list[str] | None, typer.Option("--with", help="An argument, name=value.")] = None,
    fleet: FleetDir = Path(),
) -> None:
    """Plant a fault in the running lab: `assay lab inject gpu.xid --node n0003 --with gpu=4 --with xid=79`."""
    from assay.lab.inject import FAULTS, inject
    from assay.lab.world import World

    if fault == "list":
        for name, plant in FAULTS.items():
            _say(f"{name:26} {plant.__doc__}")
        return
    inject(World(Desk(fleet.resolve()).lab), fault, node, dict(_pair(each) for each in with_ or []))
    _say(f"planted {fault} on {node}")


@app.command()
def tour(
    scenario: Annotated[Path, typer.Argument(help="The story to play, e.g. scenarios/the-loop.yaml.")],
    fleet: FleetDir = Path(),
) -> None:
    """Start a fresh lab, play a story on it through assay's own commands, and say what came of it."""
    from assay.cli.lab_tour import play

    raise typer.Exit(0 if play(Desk(fleet.resolve()), scenario) else 1)


def _node(world: Any, name: str) -> dict[str, Any]:
    state = world.load(name)
    counts = {"boots": state["boot"]["count"], "flashes": len(state["flashes"])}
    return {"node": name, "power": state["power"]["state"], **counts, "fails": state["fails"]}


def _parts(world: Any) -> str:
    from assay.lab import fabric
    from assay.lab.nvml import build

    return f"Fabric: {fabric.describe()}. {build.describe(world.home / 'lib')}."


def _pair(text: str) -> tuple[str, int | float | str]:
    name, mark, content = text.partition("=")
    if not mark:
        raise Trouble(f"{text!r} is no argument", fix="--with name=value")
    for kind in (int, float):
        try:
            return name, kind(content)
        except ValueError:
            continue
    return name, content


def _say(text: str) -> None:
    print(text)  # noqa: T201 — the answer
