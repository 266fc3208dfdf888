"""`assay lab tour` in the terminal: plays a scenario, and shows its steps, results and the state at the end."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from assay.cli.markup import escape
from assay.cli.workspace import Workspace
from assay.declare.fleet_loader import load_fleet
from assay.declare.home import choose_context
from assay.lab import process_control
from assay.lab.boot_site import BootSite, lay_out_boot_site, run_boot_server
from assay.lab.scenario import ExpectationResult, LabScenario, load_scenario
from assay.lab.scenario_player import ScenarioPlayer, TourReporter
from assay.lab.world import LabWorld
from assay.model.fleet import Fleet

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
        self.console.print(f"   [cyan]{escape(text)}[/]", soft_wrap=True)
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


def play_scenario(workspace: Workspace, file: Path) -> bool:
    """Play a scenario on a new lab with a new ledger; return whether all expectations were met.

    A scenario with new machines is played on a copy of the fleet, which goes away.
    """
    scenario, declared = load_scenario(file), load_fleet(workspace.root)
    if not scenario.new_machines:
        choose_context(workspace.root, "lab")
        if deleted := process_control.delete_lab(workspace.home):
            print(f"deleted the former lab in {workspace.data_dir.name}: {', '.join(deleted)}")  # noqa: T201
        return _play(workspace, declared, scenario)
    with tempfile.TemporaryDirectory(prefix="assay-tour-") as folder:
        site = lay_out_boot_site(declared, Path(folder), scenario.new_machines)
        return _play(Workspace(site.root, "lab"), load_fleet(site.root), scenario, site)


def _play(workspace: Workspace, declared: Fleet, scenario: LabScenario, site: BootSite | None = None) -> bool:
    console, start = Console(highlight=False), time.monotonic()
    world = LabWorld(workspace.home.world)
    with console.status("building a virtual fleet"):
        process_control.prepare_lab(declared, world, scenario.starts_at, scenario.rate, scenario)
        if site:
            site.plug_in(world, scenario.new_machines)
        process_control.start_lab(world)
    console.print(f"[bold]{scenario.description}[/]")
    if site:
        console.print(escape(site.describe_start()))
    _run_verb(workspace, "lab", "status", max_lines=1)
    reporter = ConsoleTourReporter(console)
    player = ScenarioPlayer(workspace.home, workspace.fleet, reporter)
    try:
        with run_boot_server(site) if site else contextlib.nullcontext():
            as_expected = player.play(scenario)
    finally:
        reporter.status.stop()
        process_control.stop_lab(world)
    if site:
        _print_consoles(console, site)
    else:
        _print_fleet(workspace)
    _print_end(console, player, time.monotonic() - start)
    return as_expected


def _print_consoles(console: Console, site: BootSite) -> None:
    for log in site.list_consoles():
        shown = Text.from_ansi(log.read_text(errors="replace")).plain
        lines = [line.rstrip() for line in shown.splitlines() if line.strip()]
        console.print(f"\n[bold]What the machine's own console showed[/] (the first of {len(lines)} lines)")
        for line in lines[:MAX_ANSWER_LINES]:
            console.print(f"     [dim]{escape(line)}[/]", soft_wrap=True)


def _print_fleet(workspace: Workspace) -> None:
    console = Console(highlight=False)
    console.print("\n[bold]The state of every node, and why[/]")
    _run_verb(workspace, "status")
    console.print("\n[bold]Work for technicians[/]")
    _run_verb(workspace, "tickets")
    console.print()
    if _run_verb(workspace, "report"):
        console.print("[red]the report failed[/]")
    console.print("[dim]Now try: .venv/bin/assay status, history n0003, explain n0003, tickets[/]")


def _print_end(console: Console, player: ScenarioPlayer, seconds: float) -> None:
    for chapter, result in player.missed:
        console.print(f"[red]✗ {escape(chapter)}: {escape(result.expected)} — but {escape(result.observed)}[/]")
    verdict = "[red]not as expected[/]" if player.missed else "[green]as expected[/]"
    console.print(f"The scenario ended {verdict}, after {seconds:.0f} s.")


def _run_verb(workspace: Workspace, *words: str, max_lines: int | None = None) -> int:
    """Run a verb as a person would. Its answer goes to this terminal, cut after `max_lines`."""
    command: list[Any] = [sys.executable, "-m", "assay", *words, "--fleet", str(workspace.root)]
    environment = os.environ | workspace.home.environment
    if max_lines is None:
        return subprocess.run(command, check=False, env=environment).returncode
    answer = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    sys.stdout.write("".join(answer.stdout.splitlines(keepends=True)[:max_lines]))
    return answer.returncode
