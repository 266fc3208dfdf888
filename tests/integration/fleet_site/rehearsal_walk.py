"""A walk of somebody who rehearses and works in one clone: random steps, and what must hold after each of them."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.integration.fleet_site.fleet_home import read_home
from tests.integration.fleet_site.recorder_programs import MARK
from tests.integration.fleet_site.rehearsed_site import Site
from tests.integration.fleet_site.site_fleet import commit
from tests.support.forked_assay import run_assay

POLICY = "specs/lifecycle/default.yaml"
REFUSED = 2
LONGEST_KILL_S = 4.0

LAB_VERBS: Sequence[str] = (
    "lab up",
    "lab down",
    "lab status",
    "lab inject gpu.xid --node {node} --with gpu=2 --with xid=79",
    "lab inject bmc.silent --node {node}",
    "lab advance 3",
)
"""What works on the lab in any context."""
ORDERS: Sequence[str] = (
    "hold {node} --reason rehearsal",
    "release {node} --reason rehearsal",
    "move {node} triage --reason rehearsal",
    "zap {node} --reason rehearsal",
    "certify {node} --reason rehearsal",
    "ledger seal --anchor file:{scratch}",
    "collectives run {scratch} --workload nccl-mpirun --scratch {folder} --allocated gpu-01 gpu-02",
    "tickets deliver",
    "status",
    "check",
    "doctor",
    "discover --scan 127.0.20.0/29",
    "sync",
    "fabric scan compute",
    "prune --yes",
)
ROUNDS: Sequence[str] = ("observe", "reconcile --once", "validate --node {node}", "schedules run")
"""What takes seconds."""
PLAYBOOKS: Sequence[str] = ("reboot.yml", "zap.yml", "configure.yml")
CHOICES: Sequence[str] = ("context fleet", "context lab", "context")
EXPECTED = {0, 1, REFUSED}


MakeWalk = Callable[..., "Walk"]
"""Makes a walk by its seed, in a new clone with a site of its own."""


@dataclass
class Step:
    """A step of the walk as somebody would do it again: the words, the shell's environment, how it ended."""

    words: str
    context: str
    shell: str
    mark: str
    code: int | str = ""
    said: str = ""

    def __str__(self) -> str:
        return f"{self.shell or '(nothing)':9} {self.words:70} works on {self.context:6} → {self.code}"


@dataclass
class Walk:
    """A walk in the clone at `root`, whose machines are `site`. `seed` decides each step."""

    root: Path
    site: Site
    seed: int
    steps: list[Step] = field(default_factory=list)
    may_act: bool = False
    full_disk: bool = False
    at_once: bool = False

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.before = read_home(self.root)

    @property
    def lab_home(self) -> Path:
        """The home of the lab."""
        return self.root / ".assay-lab"

    @property
    def world(self) -> Path:
        """The folder of the virtual machines."""
        return self.lab_home / "world"

    def go(self, count: int, rounds: float = 0.25) -> None:
        """Take some random steps; a share of `rounds` takes seconds."""
        for _ in range(count):
            kind = self.random.random()
            if kind < 0.12:
                self.random.choice(self._disturbances())()
            elif kind < 0.16 and rounds:
                self.type_while(self.random.choice(ROUNDS))
            elif kind < 0.22:
                self.kill(self.random.choice((*ORDERS, *ROUNDS, "lab up")))
            elif kind < 0.24 and rounds > 0.1:
                self.type_ansible(self.random.choice(PLAYBOOKS))
            elif kind < 0.24 + rounds:
                self.type(self.random.choice(ROUNDS))
            elif kind < 0.36 + rounds and not self._is_lab_up():
                self.type("lab up")
            else:
                self.type(self.random.choice((*LAB_VERBS, *ORDERS, *ORDERS, *CHOICES)))

    def type(self, words: str, shell: str | None = None, flag: str | None = None) -> Step:
        """Type a command in one of the shells, and check what must hold after it."""
        step, command, environment = self._prepare(words, shell, flag)
        done = run_assay(*command, cwd=self.root, env=environment)
        step.code, step.said = done.returncode, done.stdout + done.stderr
        assert done.returncode in EXPECTED, self.describe(done.stdout + done.stderr)
        assert "internal error" not in done.stderr, self.describe(done.stderr)
        self.check(step)
        return step

    def type_ansible(self, playbook: str) -> None:
        """Call Ansible by hand, in a shell that works on the lab."""
        node = self.random.choice(sorted(self.site.bmcs))
        words = f"ansible-playbook playbooks/{playbook} --check --limit {node}"
        step = Step(words, "lab", "lab", f"lab-{len(self.steps)}")
        self.steps.append(step)
        environment = self.site.environment(step.mark, ASSAY_CONTEXT="lab")
        done = subprocess.run(
            words.split(), cwd=self.root, env=environment, capture_output=True, text=True, check=False
        )
        step.code, step.said = done.returncode, done.stdout + done.stderr
        self.check(step)

    def kill(self, words: str) -> None:
        """Type a command, and kill it by SIGKILL at a random moment."""
        step, running = self._start(words, None)
        with suppress(subprocess.TimeoutExpired):
            running.wait(self.random.uniform(0.05, LONGEST_KILL_S))
        running.kill()
        self._wait_for_children(step.mark)
        running.communicate()
        step.code = "killed"
        self.check(step)

    def type_while(self, words: str) -> None:
        """Type a command that takes seconds; while it runs, let the lab die or another shell choose another context."""
        step, running = self._start(words, "")
        assert running.stderr
        begun = running.stderr.readline()  # it has chosen what it works on, and says so
        assert begun.startswith((f"context {step.context}:", "assay: ")), self.describe(begun)
        self.at_once = True
        time.sleep(self.random.uniform(0.05, LONGEST_KILL_S))
        self.random.choice(
            (
                lambda: self.type("context fleet"),
                lambda: self.type("context lab"),
                lambda: self.type("lab down"),
                lambda: self.type("lab up"),
                self.kill_lab,
                self.lose_overlay,
            )
        )()
        step.said = begun + running.communicate()[1]
        step.code = running.returncode
        assert step.code in EXPECTED, self.describe(step.said)
        assert "internal error" not in step.said, self.describe(step.said)
        self._wait_for_children(step.mark)
        self.check(step)
        self.at_once = False

    def check(self, step: Step) -> None:
        """Check what must hold after any step."""
        caused, after = self.site.caused_by(step.mark), read_home(self.root)
        assert not self.before.describe_loss(after), self.describe(self.before.describe_loss(after))
        if step.context != "fleet":
            assert caused == [], self.describe(f"a rehearsal reached real machines: {caused[:3]}")
            written = "" if self.at_once else self.before.describe_writing(after)
            assert not written, self.describe(f"a rehearsal wrote into the fleet's home: {written}")
        if not self.may_act:
            changes = self.site.changes()
            assert changes == [], self.describe(f"a machine was changed, and assay only watches: {changes[:3]}")
            assert self.site.delivered == [], self.describe("a ticket left this machine, and assay only watches")
        foreign = self._find_foreign()
        assert foreign == [], self.describe(f"a rehearsal reached real machines: {foreign[:3]}")
        self.before = after

    def let_act(self, step: str, pool: str = "") -> None:
        """Let automation suggest or act, as a merge does."""
        path = self.root / POLICY
        policy: dict[str, Any] = yaml.safe_load(path.read_text())
        trust = policy.setdefault("trust", {})
        if pool:
            trust.setdefault("pools", {})[pool] = step
        else:
            trust["fleet"] = step
        path.write_text(yaml.safe_dump(policy, sort_keys=False))
        commit(self.root, f"Let assay {step}")
        self.may_act = True  # at `suggest`, what a person orders is done

    def describe(self, what: str) -> str:
        """Return what went wrong, and all steps that led there."""
        return "\n".join([what, f"after these steps (seed {self.seed}):", *map(str, self.steps)])

    def end(self) -> None:
        """End the lab, and all processes that this walk's commands left."""
        run_assay("lab", "down", cwd=self.root, env=self.site.environment("end"))
        for pid in self.find_left():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def find_left(self) -> list[int]:
        """Return the processes that commands of this walk left running."""
        labs = [int(folder.name) for folder in Path("/proc").glob("[0-9]*") if self._is_own_lab(int(folder.name))]
        return [*labs, *self._list_processes("")]

    def _prepare(self, words: str, shell: str | None, flag: str | None) -> tuple[Step, list[str], dict[str, str]]:
        """Choose shell and flag, and return the step, its words and its environment."""
        shell = self.random.choice(("", "", "fleet", "lab")) if shell is None else shell
        is_choice = words.startswith(("context", "lab "))
        flag = self.random.choice(("", "", "", "fleet", "lab")) if flag is None and not is_choice else flag
        chosen = self.root / ".assay-context"
        context = flag or shell or (chosen.read_text().strip() if chosen.exists() else "fleet")
        if words.startswith("lab "):
            context = "lab"
        if words.startswith("context"):
            context = "choice"
        node = self.random.choice(sorted(self.site.bmcs))
        scratch = self.site.folder / f"scratch-{len(self.steps)}"
        command = words.format(node=node, scratch=scratch, folder=self.site.folder).split()
        command = [*command, "--context", flag] if flag else command
        step = Step(" ".join(command), context, shell, f"{context}-{len(self.steps)}")
        self.steps.append(step)
        more = {"ASSAY_CONTEXT": shell} if shell else {}
        return step, command, self.site.environment(step.mark, **more)

    def _start(self, words: str, shell: str | None) -> tuple[Step, subprocess.Popen[str]]:
        """Start a command as a process of its own. What it says on stderr can be read."""
        step, command, environment = self._prepare(words, shell, None if shell is None else "")
        nothing = subprocess.DEVNULL
        command = [sys.executable, "-m", "assay", *command]
        running = subprocess.Popen(
            command, cwd=self.root, env=environment, stdin=nothing, stdout=nothing, stderr=subprocess.PIPE, text=True
        )
        return step, running

    def _find_foreign(self) -> list[object]:
        """Return what reached the site, at any time, from a command that was none of the fleet's."""
        seen = (*self.site.requests(), *self.site.commands(), *self.site.calls())
        return [
            part
            for part in seen
            if not part.mark.startswith("fleet-")
            and not (getattr(part, "path", "").startswith("/redfish/v1") and part.mark == "" and not part.is_change)
            and part not in self.site.delivered
        ] + [one for one in self.site.delivered if '"context":"lab"' in one.body.replace(" ", "")]

    def _list_processes(self, mark: str) -> list[int]:
        """Return the processes whose environment has this mark, "" for any of this site."""
        wanted = f"{MARK}={mark}".encode()
        site = f"SITE_AHEAD={self.site.ahead_file}".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                environment = (folder / "environ").read_bytes().split(b"\0")
                if site in environment and (not mark or wanted in environment):
                    found.append(int(folder.name))
        return found

    def _wait_for_children(self, mark: str) -> None:
        """Wait until what a killed command had started has ended, but the lab."""
        ends = time.monotonic() + 120
        while [pid for pid in self._list_processes(mark) if not self._is_own_lab(pid)]:
            assert time.monotonic() < ends, self.describe("what a killed command had started goes on")
            time.sleep(0.05)

    def _is_own_lab(self, pid: int) -> bool:
        """Whether a process is the lab of this clone, by its command line."""
        with suppress(OSError):
            return str(self.world).encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return False

    def _read_lab_pid(self) -> int:
        with suppress(OSError, ValueError, KeyError, TypeError):
            return int(json.loads((self.world / "lab.json").read_text())["pid"])
        return 0

    def _is_lab_up(self) -> bool:
        return (self.world / "inventory.yml").exists() and self._is_own_lab(self._read_lab_pid())

    def _disturbances(self) -> list[Callable[[], None]]:
        usual = [
            self.kill_lab,
            self.lose_overlay,
            self.leave_stale_lab,
            self.name_foreign_process,
            self.spoil_overlay,
            self.lose_a_virtual_machine,
        ]
        return [*usual, self.fill_disk] if self.full_disk else usual

    def _disturb(self, what: str) -> None:
        self.steps.append(Step(f"({what})", "nothing", "", "nothing"))

    def kill_lab(self) -> None:
        """Kill the lab's process."""
        self._disturb("the lab's process is killed")
        pid = self._read_lab_pid()
        if self._is_own_lab(pid):
            os.kill(pid, signal.SIGKILL)
            while self._is_own_lab(pid):
                time.sleep(0.01)

    def lose_overlay(self) -> None:
        """Delete the overlay, as in a lab that starts and is not ready."""
        self._disturb("the lab has a world, and no inventory.yml")
        self.world.mkdir(parents=True, exist_ok=True)
        (self.world / "inventory.yml").unlink(missing_ok=True)

    def leave_stale_lab(self) -> None:
        """Leave the files of a lab whose process is gone."""
        self.kill_lab()
        self._disturb("a killed lab left its files")
        self.world.mkdir(parents=True, exist_ok=True)
        (self.world / "lab.json").write_text('{"pid": 4194000}')
        (self.world / "inventory.yml").touch()

    def name_foreign_process(self) -> None:
        """Let the lab's file name a process of somebody else."""
        self.kill_lab()
        self._disturb("lab.json names a process that is no lab")
        self.world.mkdir(parents=True, exist_ok=True)
        (self.world / "lab.json").write_text(json.dumps({"pid": os.getpid()}))
        (self.world / "inventory.yml").write_text("all: {}\n")

    def spoil_overlay(self) -> None:
        """Write half a file into the overlay's place."""
        self._disturb("the lab's inventory.yml is cut off")
        with suppress(OSError):
            text = (self.world / "inventory.yml").read_text()
            (self.world / "inventory.yml").write_text(text[: len(text) // 2])

    def lose_a_virtual_machine(self) -> None:
        """Remove a virtual machine's files."""
        self._disturb("the files of a virtual machine are gone")
        shutil.rmtree(self.world / "nodes" / self.random.choice(sorted(self.site.bmcs)), ignore_errors=True)

    def fill_disk(self) -> None:
        """Fill the disk of the clone, type two commands, and make room again."""
        self._disturb("the disk is full")
        ballast = self.root / "ballast"
        with suppress(OSError), ballast.open("wb") as file:
            while True:
                file.write(bytes(1 << 20))
                file.flush()
        try:
            self.type(self.random.choice(("lab up", "lab down", "hold {node} --reason full", "observe")))
            self.type(self.random.choice(ORDERS))
        finally:
            ballast.unlink()
