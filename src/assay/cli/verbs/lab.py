"""`assay lab`: the virtual fleet. Its tour plays a scenario, and shows its steps, results and the state at the end."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from assay.cli.context_line import describe_context, print_answer
from assay.cli.options import FleetDir, OutputFormat, argument, complete_nodes, option
from assay.cli.output import escape
from assay.cli.warm_commands import WarmCommands
from assay.cli.workspace import Workspace
from assay.declare.home import CONTEXT_VARIABLE, Home, choose_context, find_home, find_lab_pid, require_repository
from assay.declare.loader import load_fleet
from assay.lab import process_control
from assay.lab.boot_site import BootSite, copy_fleet, lay_out_boot_site, run_boot_server
from assay.lab.scenario import ExpectationResult, LabScenario, load_scenario
from assay.lab.scenario_player import ScenarioPlayer, TourReporter
from assay.lab.world import LabWorld
from assay.model.errors import AssayError, require_extra
from assay.model.facts import fact
from assay.model.fleet import Fleet


@fact
class LabNode:
    """A node of the lab."""

    node: str
    """The name of the node."""
    power: str
    """Whether it is on, such as On or Off."""
    boots: int
    """How often it has started."""
    flashes: int
    """How often firmware was written."""
    fails: Any
    """The faults that are planted on it."""


@fact
class LabStatusAnswer:
    """Whether the lab is up, which of its parts are real tools, and how its nodes are."""

    up: bool
    """Whether it is up; else the exit code is 1."""
    pid: int
    """The id of its process; 0 if it is down."""
    parts: str
    """Which parts are real tools and which are stand-ins, in words."""
    nodes: list[LabNode]
    """Its nodes."""


A_YEAR_HOURS = 365 * 24

lab_app = typer.Typer(add_completion=False, no_args_is_help=True, help="Run a virtual fleet to rehearse on.")

ScenarioOption = Annotated[Path | None, option("--scenario FILE", "Plant the faults of this scenario file.")]


@lab_app.command()
def up(fleet: FleetDir = Path(), scenario: ScenarioOption = None) -> None:
    """Make the virtual fleet of this repository, start it, and choose it: from now on, commands here work on it.

    The lab has a home of its own, `.assay-lab`. What a former lab left there is deleted, and named.
    """
    from assay.lab.optional_parts import list_parts

    require_extra("lab")
    home = _find_home(fleet)
    world = LabWorld(home.world)
    if find_lab_pid(world.home):
        raise AssayError("the lab is up already", where=str(world.home), fix="run: assay lab down")
    declared, plan = load_fleet(home.root), load_scenario(scenario) if scenario else None
    start, rate = (plan.starts_at, plan.rate) if plan else (datetime.now(UTC), process_control.DEFAULT_CLOCK_RATE)
    choose_context(home.root, "lab")  # first: a lab that fails to start must not leave the real machines chosen
    if deleted := process_control.delete_lab(home):
        _print_line(f"deleted the former lab in {home.folder.name}: {', '.join(deleted)}")
    process_control.build_world(declared, world, start, rate, plan)
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
    home = _find_home(fleet)
    stopped = process_control.stop_lab(LabWorld(home.world))
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
    made = world if world.home.is_dir() else None  # of a lab that nobody made, only this machine can be asked
    pid, parts = find_lab_pid(world.home), [str(part) for part in list_parts(None, made)]
    nodes = [_make_lab_node(world, name) for name in world.nodes()]
    lines = [f"the lab is {'up' if pid else 'down'}", *(f"  {part}" for part in parts)]
    lines += [f"  {node.node}  power {node.power}, boot {node.boots}, {node.flashes} flashes" for node in nodes]
    print_answer(LabStatusAnswer(bool(pid), pid, ". ".join(parts), nodes), form, lines)
    raise typer.Exit(0 if pid else 1)


@lab_app.command()
def inject(
    fault: Annotated[
        str, argument("FAULT", "The fault, such as gpu.xid or bmc.silent. `list` prints all, with their arguments.")
    ],
    node: Annotated[str, option("--node NODE", "The node to plant it on.", complete=complete_nodes)] = "",
    with_: Annotated[
        list[str] | None, option("--with NAME=VALUE", "An argument of the fault; may be repeated.")
    ] = None,
    fleet: FleetDir = Path(),
) -> None:
    """Plant a fault on a node of the lab: `assay lab inject gpu.xid --node n0003 --with gpu=4 --with xid=79`."""
    from assay.lab.faults.injection import FAULTS, inject_fault

    if fault == "list":
        for name, known in FAULTS.items():
            _print_line(f"{name:26} {' '.join(known.meaning.split())} Takes {known.usage}.")
        return
    inject_fault(_find_world(fleet), fault, node, dict(map(_parse_argument, with_ or [])))
    _print_line(f"planted {fault} on {node}")


@lab_app.command()
def advance(
    hours: Annotated[float, argument("HOURS", "How many hours, such as 0.5 or 25.", min=0, max=A_YEAR_HOURS)],
    fleet: FleetDir = Path(),
) -> None:
    """Let the lab's clock go ahead at once, for what takes long, such as a day of tests: `assay lab advance 25`."""
    from assay.lab.process_control import let_time_pass

    world = _find_world(fleet)
    if not find_lab_pid(world.home):
        raise AssayError("the lab is down", where=str(world.home), fix="run: assay lab up")
    let_time_pass(world, timedelta(hours=hours), _print_line)(world.nodes())
    _print_line(f"it is {world.clock().now():%Y-%m-%d %H:%M} UTC in the lab")


@lab_app.command()
def tour(
    scenarios: Annotated[list[Path], argument("SCENARIO", "The scenario files, such as scenarios/the-loop.yaml.")],
    fleet: FleetDir = Path(),
) -> None:
    """Start a new lab, play a scenario on it with assay's own commands, and check the expected outcomes.

    Of several scenarios, each has a lab of its own: the last that of the fleet, and the others, one after the other at
    the same time, those of copies of the fleet.

    Exit codes: 0 everything ended as expected; 1 something did not; 2 the scenario could not be played.
    """
    require_extra("lab")
    workspace = Workspace(fleet.resolve(), "lab")
    *others, last = scenarios
    if not others:
        raise typer.Exit(0 if play_scenario(workspace, load_scenario(last)) else 1)
    with BackgroundTour(last, workspace.root) as tour_of_last:
        as_expected = [play_scenario(workspace, load_scenario(file), on_copy=True) for file in others]
        exit_code = tour_of_last.show()
    raise typer.Exit(exit_code if all(as_expected) else 1)


def _find_home(fleet: Path) -> Home:
    require_repository(fleet)
    return Home(fleet.resolve(), "lab")


def _find_world(fleet: Path) -> LabWorld:
    return LabWorld(_find_home(fleet).world)


def _make_lab_node(world: LabWorld, name: str) -> LabNode:
    state = world.load(name)
    return LabNode(
        node=name,
        power=state["power"]["state"],
        boots=state["boot"]["count"],
        flashes=len(state["flashes"]),
        fails=state["fails"],
    )


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


SHOW_INTERVAL_S = 0.1
MAX_ANSWER_LINES = 24
"""Lines of a command's answer that the tour shows."""


class ConsoleTourReporter(TourReporter):
    """Prints the tour in the terminal, with a spinner during a step."""

    def __init__(self, console: Console) -> None:
        self.console, self.status, self.lines = console, console.status(""), 0

    def begin_chapter(self, number: int, title: str) -> None:
        """Print a heading."""
        self.status.stop()
        self.console.print(f"\n[bold]{number}. {escape(title)}[/]")

    def begin_step(self, text: str) -> None:
        """Print the step, and show a spinner until the next line."""
        self.status.stop()
        self.lines = 0
        self.console.print(f"   [bold]{escape(text)}[/]", soft_wrap=True)
        self.status.update(escape(text[:80]))
        self.status.start()

    def show_line(self, text: str) -> None:
        """Print a line of the answer, indented."""
        self.status.stop()
        self.lines += 1
        if self.lines <= MAX_ANSWER_LINES:
            self.console.print(f"     [dim]{escape(text)}[/]", soft_wrap=True)
        elif self.lines == MAX_ANSWER_LINES + 1:
            self.console.print("     [dim]…[/]")

    def show_result(self, result: ExpectationResult) -> None:
        """Print a tick, or what was observed instead."""
        self.status.stop()
        if result.met:
            self.console.print(f"   [green]✓[/] {escape(result.expected)}", soft_wrap=True)
        else:
            self.console.print(
                f"   [red]✗ {escape(result.expected)}[/] — but {escape(result.observed)}", soft_wrap=True
            )


class BackgroundTour(contextlib.AbstractContextManager["BackgroundTour"]):
    """A tour in a process of its own, whose output is kept until it is shown. It is interrupted at the block's end."""

    def __init__(self, scenario: Path, root: Path) -> None:
        command = [sys.executable, "-m", "assay", "lab", "tour", str(scenario), f"--fleet={root}"]
        terminal = {"FORCE_COLOR": "1", "COLUMNS": str(Console().width)} if sys.stdout.isatty() else {}
        self._output = tempfile.NamedTemporaryFile()  # noqa: SIM115 — __exit__ closes it
        with Path(self._output.name).open("wb") as output:
            self._process = subprocess.Popen(
                command, stdout=output, stderr=output, env=os.environ | terminal, start_new_session=True
            )

    def show(self) -> int:
        """Print the output until the process ends, and return its exit code."""
        is_over = False
        while not is_over:
            is_over = self._process.poll() is not None
            shutil.copyfileobj(self._output, sys.stdout.buffer)
            sys.stdout.flush()
            time.sleep(0 if is_over else SHOW_INTERVAL_S)
        return self._process.returncode

    def __exit__(self, *_: object) -> None:
        """Interrupt it if it still runs: its lab goes down with it."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait()
        self._output.close()


def play_scenario(workspace: Workspace, scenario: LabScenario, *, on_copy: bool = False) -> bool:
    """Play a scenario on a new lab with a new ledger; return whether all expectations were met.

    A scenario with new machines is always played on a copy of the fleet, which goes away with its lab.
    """
    declared = load_fleet(workspace.root)
    if not (on_copy or scenario.new_machines):
        choose_context(workspace.root, "lab")
        if deleted := process_control.delete_lab(workspace.home):
            print(f"deleted the former lab in {workspace.data_dir.name}: {', '.join(deleted)}")  # noqa: T201
        return _play(workspace, declared, scenario)
    with tempfile.TemporaryDirectory(prefix="assay-tour-") as folder:
        root = copy_fleet(declared, Path(folder))
        site = lay_out_boot_site(declared, root, scenario.new_machines) if scenario.new_machines else None
        return _play(Workspace(root, "lab"), load_fleet(root), scenario, site, is_copy=True)


def _play(
    workspace: Workspace,
    declared: Fleet,
    scenario: LabScenario,
    site: BootSite | None = None,
    *,
    is_copy: bool = False,
) -> bool:
    console, start = Console(highlight=False), time.monotonic()
    console.print(f"[bold]{scenario.description}[/]")
    commands = WarmCommands(os.environ | workspace.home.environment)
    world, new = LabWorld(workspace.home.world), scenario.new_machines
    with console.status("building a virtual fleet"):
        process_control.build_world(declared, world, scenario.starts_at, scenario.rate, scenario, new)
        if site:
            site.plug_in(world, new)
        process_control.start_lab(world)
    console.print("the lab is up")
    reporter = ConsoleTourReporter(console)
    player = ScenarioPlayer(workspace.home, workspace.fleet, reporter, commands.run)
    try:
        with run_boot_server(site) if site else contextlib.nullcontext():
            as_expected = player.play(scenario)
    finally:
        reporter.status.stop()
        process_control.stop_lab(world)
    if not is_copy:
        _print_fleet(commands, workspace.root)
    _print_end(console, player, time.monotonic() - start)
    return as_expected


def _print_fleet(commands: WarmCommands, root: Path) -> None:
    console = Console(highlight=False)
    console.print("\n[bold]The state of every node, and why[/]")
    commands.run_here("status", "--fleet", str(root))
    console.print("\n[bold]Work for technicians[/]")
    commands.run_here("tickets", "--fleet", str(root))
    console.print()
    if commands.run_here("report", "--fleet", str(root)):
        console.print("[red]the report failed[/]")
    console.print("[dim]Now try: .venv/bin/assay status, history n0003, explain n0003, tickets[/]")


def _print_end(console: Console, player: ScenarioPlayer, seconds: float) -> None:
    for chapter, result in player.missed:
        console.print(f"[red]✗ {escape(chapter)}: {escape(result.expected)} — but {escape(result.observed)}[/]")
    verdict = "[red]not as expected[/]" if player.missed else "[green]as expected[/]"
    console.print(f"The scenario ended {verdict}, after {seconds:.0f} s.")
