"""Plays a scenario on a running lab with the same commands that a person types, and reports the results."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain

from assay.declare.home import CONTEXT_VARIABLE, Home
from assay.lab.faults.injection import inject_fault
from assay.lab.process_control import let_time_pass
from assay.lab.scenario import (
    ExpectationResult,
    ExpectStep,
    InjectStep,
    JobStep,
    LabScenario,
    ReconcileStep,
    ScenarioObservation,
    ScenarioStep,
    check_expectations,
)
from assay.lab.scheduler import LabScheduler
from assay.lab.world import LabWorld
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.fleet import Fleet

FLASH_DEADLINE_S = 300.0


class TourReporter:
    """Receives the progress of a tour. These methods do nothing; the CLI prints."""

    def begin_chapter(self, number: int, title: str) -> None:
        """A chapter begins."""

    def begin_step(self, text: str) -> None:
        """A step begins; it may take a while."""

    def show_line(self, text: str) -> None:
        """A command printed this line on stdout."""

    def show_result(self, result: ExpectationResult) -> None:
        """An expectation was checked."""


CommandRunner = Callable[[Sequence[str], Callable[[str], None]], subprocess.CompletedProcess[str]]
"""Runs `assay` with these words until it ends, and shows each line of its answer."""


@dataclass
class ScenarioPlayer:
    """Plays a scenario in the lab whose home this is; it must be up.

    `missed` is (chapter, result). `burn_ins`: for each jump of the clock, what waits for the burn-ins of nodes.
    """

    home: Home
    fleet: Fleet
    reporter: TourReporter
    run: CommandRunner
    missed: list[tuple[str, ExpectationResult]] = field(default_factory=list)
    burn_ins: list[Callable[[Collection[str]], None]] = field(default_factory=list)

    @property
    def world(self) -> LabWorld:
        """The lab's world."""
        return LabWorld(self.home.world)

    def play(self, scenario: LabScenario) -> bool:
        """Play every chapter; return whether all expectations were met."""
        for number, chapter in enumerate(scenario.chapters, 1):
            self.reporter.begin_chapter(number, chapter.title)
            for result in chain.from_iterable(map(self._play_step, chapter.steps)):
                self.reporter.show_result(result)
                if not result.met:
                    self.missed.append((chapter.title, result))
        return not self.missed

    def _play_step(self, step: ScenarioStep) -> list[ExpectationResult]:
        match step:
            case ScenarioStep(reconcile=ReconcileStep() as order):
                return self._reconcile(order)
            case ScenarioStep(expect=ExpectStep() as expected):
                return self._check(expected)
            case ScenarioStep(inject=InjectStep() as inject):
                arguments = "".join(f" {name}={content}" for name, content in inject.arguments.items())
                self.reporter.begin_step(f"the lab plants {inject.fault}{arguments} on {inject.node}")
                inject_fault(self.world, inject.fault, inject.node, inject.arguments)
            case ScenarioStep(job=JobStep() as job):
                self.reporter.begin_step(f"a customer's job {job.name} starts on {job.node} for {job.hours:g} h")
                scheduler = LabScheduler(self.fleet.nodes[job.node].settings)
                scheduler.place(job.name, "customer", job.node, job.hours * 3600)
            case ScenarioStep(advance_hours=float() as hours):
                self.reporter.begin_step(f"{hours:g} hours pass")
                self.burn_ins.append(let_time_pass(self.world, timedelta(hours=hours)))
            case ScenarioStep(assay=list() as words):
                self._run_assay(*words)
        return []

    def _reconcile(self, step: ReconcileStep) -> list[ExpectationResult]:
        for wait in self.burn_ins:
            wait(step.nodes or self.world.nodes())
        options = [*(f"--node={node}" for node in step.nodes), *(["--settle"] if step.settle else [])]
        if step.kill_in_flash:
            return [self._kill_in_flash(step.kill_in_flash, options)]
        self._run_assay("reconcile", "--once", *options)
        return []

    def _kill_in_flash(self, node: str, options: list[str]) -> ExpectationResult:
        self.reporter.begin_step(f"$ assay reconcile --once {' '.join(options)}   … SIGKILL while {node}'s BMC flashes")
        process = subprocess.Popen(
            [sys.executable, "-m", "assay", *self._words("reconcile", "--once", *options)],
            env=os.environ | {CONTEXT_VARIABLE: "lab"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        flashing = False
        deadline = time.monotonic() + FLASH_DEADLINE_S
        while process.poll() is None and not flashing and time.monotonic() < deadline:
            time.sleep(0.05)
            now = self.world.clock().now().isoformat()
            flashing = any(task["started_at"] <= now < task["ends_at"] for task in self.world.load(node)["tasks"])
        os.kill(process.pid, signal.SIGKILL)
        ended = process.wait()
        text = f"assay was killed during the firmware update of {node}"
        return ExpectationResult(text, flashing and ended == -signal.SIGKILL, f"it ended with {ended} before that")

    def _check(self, step: ExpectStep) -> list[ExpectationResult]:
        answer = self.run(self._words("status", "--format", "json"), lambda _: None)
        if answer.returncode:
            raise AssayError(f"assay status ended with {answer.returncode}: {answer.stderr.strip()}")
        status = {node["node"]: node for node in json.loads(answer.stdout)["nodes"]}
        entries = Ledger.open(self.home.folder / "ledger.sqlite").entries()
        return list(check_expectations(step, ScenarioObservation(entries, status, self.world)))

    def _run_assay(self, *words: str) -> None:
        self.reporter.begin_step(f"$ assay {' '.join(words)}")
        done = self.run(self._words(*words), self.reporter.show_line)
        if done.returncode not in (0, 1):
            raise AssayError(f"assay {words[0]} ended with {done.returncode}: {done.stderr.strip()}")

    def _words(self, verb: str, *words: str) -> list[str]:
        return [verb, *words, "--fleet", str(self.home.root)]
