"""`assay lab`: the virtual fleet."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.completion import complete_nodes
from assay.cli.context_line import describe_context, format_answer
from assay.cli.options import FleetDir, OutputFormat
from assay.cli.workspace import Workspace
from assay.declare.home import CONTEXT_VARIABLE, Home, choose_context, find_home, find_lab_pid
from assay.model.errors import AssayError, require_extra

if TYPE_CHECKING:
    from assay.cli.answers.evidence_answers import LabNode, LabStatusAnswer
    from assay.lab.world import LabWorld

A_YEAR_HOURS = 365 * 24

lab_app = typer.Typer(add_completion=False, no_args_is_help=True)

ScenarioOption = Annotated[
    Path | None, typer.Option("--scenario", metavar="FILE", help="Plant the faults of this scenario file.")
]


@lab_app.callback()
def _lab() -> None:
    """Run a virtual fleet to rehearse on."""


@lab_app.command()
def up(fleet: FleetDir = Path(), scenario: ScenarioOption = None) -> None:
    """Make the virtual fleet of this repository, start it, and choose it: from now on, commands here work on it.

    The lab has a home of its own, `.assay-lab`. What a former lab left there is deleted, and named.
    """
    from assay.declare.fleet_loader import load_fleet
    from assay.lab import process_control
    from assay.lab.optional_parts import list_parts
    from assay.lab.process_control import DEFAULT_CLOCK_RATE
    from assay.lab.scenario import load_scenario
    from assay.lab.world import LabWorld

    require_extra("lab")
    home = Home(fleet.resolve(), "lab")
    world = LabWorld(home.world)
    if find_lab_pid(world.home):
        raise AssayError("the lab is up already", where=str(world.home), fix="run: assay lab down")
    declared, plan = load_fleet(home.root), load_scenario(scenario) if scenario else None
    start, rate = (plan.starts_at, plan.rate) if plan else (datetime.now(UTC), DEFAULT_CLOCK_RATE)
    choose_context(home.root, "lab")  # first: a lab that fails to start must not leave the real machines chosen
    if deleted := process_control.delete_lab(home):
        _print_line(f"deleted the former lab in {home.folder.name}: {', '.join(deleted)}")
    process_control.prepare_lab(declared, world, start, rate, plan)
    process_control.start_lab(world)
    size = f"{len(world.nodes())} nodes, {rate:g} lab seconds in a second"
    _print_line(f"the lab is up: {size}")
    for part in list_parts(declared, world):
        _print_line(f"  {part}")
    if (chosen := find_home(home.root)).is_lab:
        _print_line(describe_context(chosen))
    else:
        _print_line(f"${CONTEXT_VARIABLE} says {chosen.context}: commands of this shell work on real machines")


@lab_app.command()
def down(fleet: FleetDir = Path()) -> None:
    """Stop the virtual fleet. What happened in it stays, and so does the choice: see `assay context`."""
    from assay.lab.process_control import stop_lab
    from assay.lab.world import LabWorld

    home = Home(fleet.resolve(), "lab")
    stopped = stop_lab(LabWorld(home.world))
    _print_line("the lab is down" if stopped else "the lab was not up")
    if find_home(home.root).is_lab:
        _print_line("the lab is still chosen, and commands that act refuse; for the real machines: assay context fleet")


@lab_app.command()
def status(fleet: FleetDir = Path(), form: OutputFormat = "text") -> None:
    """Show whether the lab is up, which of its parts are real tools, and the state of its nodes.

    Exit codes: 0 up; 1 down.
    """
    from assay.lab.optional_parts import list_parts

    world = _find_world(fleet)
    pid, parts = find_lab_pid(world.home), [str(part) for part in list_parts(None, world)]
    nodes = [_node_as_json(world, name) for name in world.nodes()]
    if form == "json":
        answer: LabStatusAnswer = {"up": bool(pid), "pid": pid, "parts": ". ".join(parts), "nodes": nodes}
        _print_line(format_answer(answer))
    else:
        _print_line(f"the lab is {'up' if pid else 'down'}")
        for part in parts:
            _print_line(f"  {part}")
        for node in nodes:
            _print_line(f"  {node['node']}  power {node['power']}, boot {node['boots']}, {node['flashes']} flashes")
    raise typer.Exit(0 if pid else 1)


@lab_app.command()
def inject(
    fault: Annotated[
        str,
        typer.Argument(
            metavar="FAULT",
            help="The fault, such as gpu.xid, gpu.thermal or bmc.silent. `list` prints all of them.",
            show_default=False,
        ),
    ],
    node: Annotated[
        str, typer.Option("--node", metavar="NODE", autocompletion=complete_nodes, help="The node to plant it on.")
    ] = "",
    with_: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="NAME=VALUE", help="An argument of the fault; may be repeated."),
    ] = None,
    fleet: FleetDir = Path(),
) -> None:
    """Plant a fault on a node of the lab: `assay lab inject gpu.xid --node n0003 --with gpu=4 --with xid=79`."""
    from assay.lab.faults.injection import FAULTS, inject_fault

    if fault == "list":
        for name, plant in FAULTS.items():
            _print_line(f"{name:26} {plant.__doc__}")
        return
    arguments = dict(_parse_argument(text) for text in with_ or [])
    inject_fault(_find_world(fleet), fault, node, arguments)
    _print_line(f"planted {fault} on {node}")


@lab_app.command()
def advance(
    hours: Annotated[
        float,
        typer.Argument(
            metavar="HOURS", min=0, max=A_YEAR_HOURS, help="How many hours, such as 0.5 or 25.", show_default=False
        ),
    ],
    fleet: FleetDir = Path(),
) -> None:
    """Let the lab's clock go ahead at once, for what takes long, such as a day of tests: `assay lab advance 25`."""
    from assay.lab.passing_time import let_time_pass

    world = _find_world(fleet)
    if not find_lab_pid(world.home):
        raise AssayError("the lab is down", where=str(world.home), fix="run: assay lab up")
    let_time_pass(world, timedelta(hours=hours), _print_line)
    _print_line(f"it is {world.clock().now():%Y-%m-%d %H:%M} UTC in the lab")


@lab_app.command()
def tour(
    scenario: Annotated[
        Path,
        typer.Argument(
            metavar="SCENARIO", help="The scenario file, such as scenarios/the-loop.yaml.", show_default=False
        ),
    ],
    fleet: FleetDir = Path(),
) -> None:
    """Start a new lab, play a scenario on it with assay's own commands, and check the expected outcomes.

    Exit codes: 0 everything ended as expected; 1 something did not; 2 the scenario could not be played.
    """
    from assay.cli.verbs.lab_tour import play_scenario

    require_extra("lab")
    raise typer.Exit(0 if play_scenario(Workspace(fleet.resolve(), "lab"), scenario) else 1)


def _find_world(fleet: Path) -> LabWorld:
    from assay.lab.world import LabWorld

    return LabWorld(Home(fleet.resolve(), "lab").world)


def _node_as_json(world: LabWorld, name: str) -> LabNode:
    state = world.load(name)
    return {
        "node": name,
        "power": state["power"]["state"],
        "boots": state["boot"]["count"],
        "flashes": len(state["flashes"]),
        "fails": state["fails"],
    }


def _parse_argument(text: str) -> tuple[str, int | float | str]:
    name, equals, content = text.partition("=")
    if not equals:
        raise AssayError(f"{text!r} is not an argument", fix="use --with NAME=VALUE")
    for kind in (int, float):
        try:
            return name, kind(content)
        except ValueError:
            continue
    return name, content


def _print_line(text: str) -> None:
    print(text)  # noqa: T201 — the answer
