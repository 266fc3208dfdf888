"""Plays a scenario on a running lab, through the same commands that a person types, and says what came of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from assay.lab.expect import Finding, Seen, findings
from assay.lab.fabric import swap
from assay.lab.inject import inject
from assay.lab.scenario import Certify, Chapter, Expect, Inject, Job, Reconcile, Scenario, Step, Swap
from assay.lab.scheduler import LabWorkloads
from assay.lab.world import World
from assay.ledger.store import Ledger
from assay.ledger.where import ASKED
from assay.model.errors import Trouble
from assay.model.fleet import Fleet

FLASH_WITHIN_S = 60.0


class Teller:
    """What a tour says while it goes. The CLI says it in colour; a test listens."""

    def chapter(self, number: int, title: str) -> None:
        """A chapter begins."""

    def doing(self, text: str) -> None:
        """A step begins; it may take a while."""

    def said(self, text: str) -> None:
        """A line of a command's answer."""

    def found(self, finding: Finding) -> None:
        """Something declared was held against what is."""


@dataclass
class Tour:
    """A scenario, played in the fleet repository at `root`, whose lab is up."""

    root: Path
    fleet: Fleet
    world: World
    teller: Teller
    missed: list[tuple[str, Finding]] = field(default_factory=list)

    def play(self, scenario: Scenario) -> bool:
        """Play every chapter; return whether everything came out as declared."""
        for number, chapter in enumerate(scenario.chapters, 1):
            self.teller.chapter(number, chapter.title)
            self._play_chapter(chapter)
        return not self.missed

    def _play_chapter(self, chapter: Chapter) -> None:
        for step in chapter.steps:
            for finding in self._play_step(step):
                self.teller.found(finding)
                if not finding.met:
                    self.missed.append((chapter.title, finding))

    def _play_step(self, step: Step) -> list[Finding]:
        verbs: dict[str, Callable[..., list[Finding] | None]] = {
            "inject": self._inject,
            "swap": self._swap,
            "job": self._job,
            "certify": self._certify,
            "advance_hours": self._advance,
            "reconcile": self._reconcile,
            "this_machine": self._this_machine,
            "expect": self._expect,
        }
        return verbs[step.does](getattr(step, step.does)) or []

    def _inject(self, wish: Inject) -> None:
        arguments = " ".join(f"{name}={content}" for name, content in wish.arguments.items())
        self.teller.doing(f"the lab plants {wish.fault} {arguments} on {wish.node}".replace("  ", " "))
        inject(self.world, wish.fault, wish.node, wish.arguments)

    def _swap(self, wish: Swap) -> None:
        self.teller.doing(f"hands exchange the cables of {wish.a} and {wish.b}")
        swap(self.world, wish.a, wish.b)

    def _job(self, wish: Job) -> None:
        self.teller.doing(f"a customer's job {wish.name} starts on {wish.node} for {wish.hours:g} h")
        scheduler = LabWorkloads(self.fleet.nodes[wish.node].variables)
        scheduler.place(wish.name, "customer", wish.node, wish.hours * 3600)

    def _certify(self, wish: Certify) -> None:
        self._assay("certify", wish.node, "--reason", wish.reason)

    def _advance(self, hours: float) -> None:
        self.teller.doing(f"{hours:g} hours pass")
        self.world.jump(timedelta(hours=hours))

    def _reconcile(self, wish: Reconcile) -> list[Finding]:
        options = [*(f"--node={node}" for node in wish.nodes), *(["--settle"] if wish.settle else [])]
        if wish.kill_in_flash:
            return [self._kill_in_flash(wish.kill_in_flash, options)]
        self._assay("reconcile", "--once", *options)
        return []

    def _kill_in_flash(self, node: str, options: list[str]) -> Finding:
        self.teller.doing(
            f"$ assay reconcile --once {' '.join(options)}   … and SIGKILL while the BMC of {node} flashes"
        )
        process = subprocess.Popen(
            self._command("reconcile", "--once", *options),
            env=_own(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        flashing = _until(lambda: _flashes_now(self.world, node) or process.poll() is not None, FLASH_WITHIN_S)
        os.kill(process.pid, signal.SIGKILL)
        ended = process.wait()
        met = flashing and ended == -signal.SIGKILL
        return Finding(f"assay was killed in the middle of {node}'s flash", met, f"it ended with {ended} before that")

    def _this_machine(self, _: bool) -> None:
        self._assay("observe", "--here")

    def _expect(self, wish: Expect) -> list[Finding]:
        answer = subprocess.run(
            self._command("status", "--format", "json"), capture_output=True, text=True, check=False, env=_own()
        )
        if answer.returncode:
            raise Trouble(f"assay status ended with {answer.returncode}: {answer.stderr.strip()}")
        status = {node["node"]: node for node in json.loads(answer.stdout)["nodes"]}
        entries = Ledger.open(self.root / ".assay" / "ledger.sqlite").entries()
        return list(findings(wish, Seen(entries, status, self.world)))

    def _assay(self, *words: str) -> None:
        self.teller.doing(f"$ assay {' '.join(words)}")
        process = subprocess.Popen(
            self._command(*words),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=_own(),
        )
        out, err = process.communicate()
        for line in out.splitlines():
            self.teller.said(line)
        if process.returncode not in (0, 1):
            raise Trouble(f"assay {words[0]} ended with {process.returncode}: {err.strip()}")

    def _command(self, verb: str, *words: str) -> list[str]:
        return [sys.executable, "-m", "assay", verb, "--fleet", str(self.root), *words]


def _own() -> dict[str, str]:
    """Return the environment of a tour's commands: a rehearsal never writes in the ledger of a real fleet."""
    return {name: value for name, value in os.environ.items() if name != ASKED}


def _flashes_now(world: World, node: str) -> bool:
    now = world.clock().now().isoformat()
    return any(task["started_at"] <= now < task["ends_at"] for task in world.load(node)["tasks"])


def _until(come: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if come():
            return True
        time.sleep(0.05)
    return False
