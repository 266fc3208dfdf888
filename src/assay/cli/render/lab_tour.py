"""`assay lab tour` in the terminal: plays a scenario, and shows its steps, results and the state at the end."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from assay.cli.workspace import Workspace
from assay.lab import process_control
from assay.lab.scenario import ExpectationResult, load_scenario
from assay.lab.scenario_player import ScenarioPlayer, TourReporter
from assay.lab.world import LabWorld

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
    """Play a scenario on a new lab with a new ledger; return whether all expectations were met."""
    console, scenario, start = Console(highlight=False), load_scenario(file), time.monotonic()
    world = LabWorld(workspace.lab_dir)
    process_control.delete_lab(workspace.data_dir)
    with console.status("building a virtual fleet"):
        process_control.prepare_lab(workspace.fleet, world, scenario.starts_at, scenario.rate, scenario)
        process_control.start_lab(world)
    console.print(f"[bold]{scenario.description}[/]")
    _run_verb(workspace, "lab", "status", max_lines=1)
    reporter = ConsoleTourReporter(console)
    player = ScenarioPlayer(workspace.root, Workspace(workspace.root).fleet, world, reporter)
    try:
        as_expected = player.play(scenario)
    finally:
        reporter.status.stop()
        process_control.stop_lab(world)
    _print_end(console, workspace, player, time.monotonic() - start)
    return as_expected


def _print_end(console: Console, workspace: Workspace, player: ScenarioPlayer, seconds: float) -> None:
    console.print("\n[bold]The state of every node, and why[/]")
    _run_verb(workspace, "status")
    console.print("\n[bold]Work for technicians[/]")
    _run_verb(workspace, "tickets")
    console.print()
    report_code = _run_verb(workspace, "report")
    console.print("[dim]Now try: .venv/bin/assay status, history n0003, explain n0003, tickets[/]")
    for chapter, result in player.missed:
        console.print(f"[red]✗ {escape(chapter)}: {escape(result.expected)} — but {escape(result.observed)}[/]")
    verdict = "[red]not as expected[/]" if player.missed else "[green]as expected[/]"
    failed = "" if report_code == 0 else "; the report failed"
    console.print(f"The scenario ended {verdict}, after {seconds:.0f} s{failed}.")


def _run_verb(workspace: Workspace, *words: str, max_lines: int | None = None) -> int:
    """Run a verb as a person would. Its answer goes to this terminal, cut after `max_lines`."""
    command: list[Any] = [sys.executable, "-m", "assay", *words, "--fleet", str(workspace.root)]
    if max_lines is None:
        return subprocess.run(command, check=False).returncode
    answer = subprocess.run(command, check=False, capture_output=True, text=True)
    sys.stdout.write("".join(answer.stdout.splitlines(keepends=True)[:max_lines]))
    return answer.returncode
