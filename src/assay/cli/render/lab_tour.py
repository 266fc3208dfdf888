"""Plays a story for a person: what is done, what was said, what came of it, and where everything stands."""

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
"""Lines of one command's answer that the story repeats; the rest is in the ledger."""


class ConsoleTourReporter(TourReporter):
    """Tells the story in the terminal, with a spinner while a step takes its time."""

    def __init__(self, console: Console) -> None:
        self.console, self.status, self.lines = console, console.status(""), 0

    def begin_chapter(self, number: int, title: str) -> None:
        """Print a heading."""
        self.status.stop()
        self.console.print(f"\n[bold]{number}. {escape(title)}[/]")

    def begin_step(self, text: str) -> None:
        """Print the step, and keep a spinner going until the next line."""
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

    def show_result(self, finding: ExpectationResult) -> None:
        """Print a tick, or what was seen instead."""
        self.status.stop()
        if finding.met:
            self.console.print(f"   [green]✓[/] {escape(finding.expected)}", soft_wrap=True)
        else:
            self.console.print(
                f"   [red]✗ {escape(finding.expected)}[/] — but {escape(finding.observed)}", soft_wrap=True
            )


def play_scenario(desk: Workspace, scenario: Path) -> bool:
    """Play `scenario` from a fresh lab and ledger; return whether it came out as declared."""
    console, story, began = Console(highlight=False), load_scenario(scenario), time.monotonic()
    world = LabWorld(desk.lab_dir)
    process_control.delete_lab(desk.data_dir)
    with console.status("building a virtual data hall"):
        process_control.prepare_lab(desk.fleet, world, story.starts_at, story.rate, story)
        process_control.start_lab(world)
    console.print(f"[bold]{story.description}[/]")
    _run_verb(desk, "lab", "status", quiet_after=1)
    teller = ConsoleTourReporter(console)
    tour = ScenarioPlayer(desk.root, Workspace(desk.root).fleet, world, teller)
    try:
        well = tour.play(story)
    finally:
        teller.status.stop()
        process_control.stop_lab(world)
    _print_end(console, desk, tour, time.monotonic() - began)
    return well


def _print_end(console: Console, desk: Workspace, tour: ScenarioPlayer, seconds: float) -> None:
    console.print("\n[bold]Where every node is, and why[/]")
    _run_verb(desk, "status")
    console.print("\n[bold]Work for technicians[/]")
    _run_verb(desk, "tickets")
    console.print()
    reported = _run_verb(desk, "report")
    console.print("[dim]Ask on: .venv/bin/assay status, history n0003, explain n0003, tickets[/]")
    for chapter, finding in tour.missed:
        console.print(f"[red]✗ {escape(chapter)}: {escape(finding.expected)} — but {escape(finding.observed)}[/]")
    verdict = "[red]not as declared[/]" if tour.missed else "[green]as declared[/]"
    console.print(f"The story came out {verdict}, in {seconds:.0f} s{'' if reported == 0 else '; the report failed'}.")


def _run_verb(desk: Workspace, *words: str, quiet_after: int | None = None) -> int:
    """Run a verb as a person would, its answer on this terminal."""
    command: list[Any] = [sys.executable, "-m", "assay", *words, "--fleet", str(desk.root)]
    if quiet_after is None:
        return subprocess.run(command, check=False).returncode
    answer = subprocess.run(command, check=False, capture_output=True, text=True)
    sys.stdout.write("".join(answer.stdout.splitlines(keepends=True)[:quiet_after]))
    return answer.returncode
