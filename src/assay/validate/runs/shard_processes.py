"""Runs shards as processes of this machine, some at a time, each with a deadline, and tied to the run that started it.

When such a process ends, its shard is through, lost, or goes on in a fresh process. Only the mark that pytest writes
after its last check says that a shard is through; no exit code does. A process that ends during a check costs that
check its outcome on that subject, and nothing else. No pytest is imported, which the run itself does not need.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.validate.judging.unjudged_checks import JudgingNote, UnjudgedChecks, locate_note, read_note
from assay.validate.runs.parent_process import PARENT_PID_VARIABLE
from assay.validate.runs.sharding import (
    EndedShard,
    RunShard,
    describe_code,
    describe_exit,
    describe_timeout,
    is_shard_judged,
)

OUTSIDE_SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
"""Signals that people, Slurm or the kernel's lack of memory send: the check is to blame only if it happens again."""
MAX_CRASHES = 3
"""A check that has crashed so often in a shard is not tried on its other subjects."""
SHARD_INTERRUPT_GRACE_S = 10.0
"""Time for an interrupted process to write its last outcomes."""
PYTEST, FORKER = ((sys.executable, "-m", name) for name in ("pytest", "assay.validate.runs.parent_process"))
_FORKERS: dict[int, tuple[subprocess.Popen[bytes], socket.socket]] = {}
"""The forker of this process, by its id: a copy of this process has none."""
ISOLATION_VARIABLES = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "", "PYTEST_PLUGINS": ""}
"""Installed plugins and pytest's variables must not change a run, or slow it; `-p` loads what the user wants."""


def settle_exit(shard: RunShard, code: int) -> str | None:
    """Return the failure of a shard whose process has ended ("" for none), None where a fresh process must go on."""
    if is_shard_judged(shard):
        return ""
    note = read_note(shard.store)
    locate_note(shard.store).unlink(missing_ok=True)
    if note is None:
        return describe_exit(code, shard.log)
    with UnjudgedChecks.open(shard.store) as unjudged:
        is_from_outside = note.signalled or -code in OUTSIDE_SIGNALS
        if is_from_outside and unjudged.replace_suspect(note) != note:
            return None
        _blame(unjudged, note, describe_code(code))
    return None


def _blame(unjudged: UnjudgedChecks, note: JudgingNote, how: str) -> None:
    if not note.subject:
        unjudged.add(note.check, "", f"{note.check} cannot be imported: {how} meanwhile")
        return
    unjudged.add(note.check, note.subject, f"the check crashed: {how} meanwhile")
    if unjudged.count(note.check) >= MAX_CRASHES:
        unjudged.add(note.check, "", f"not judged: the check has crashed {MAX_CRASHES} times, at last {how}")


@dataclass(frozen=True)
class RunningShard:
    """A shard, its process, and its deadline (monotonic seconds)."""

    shard: RunShard
    process: ShardProcess
    deadline: float


class LocalProcesses:
    """A ShardRunner with at most `jobs` processes at a time. They end when this process ends, in whatever way."""

    def __init__(self, jobs: int) -> None:
        self._jobs, self._deadline_s = jobs, 0.0
        self._waiting, self._running = deque[RunShard](), list[RunningShard]()

    def start(self, shards: Sequence[RunShard], deadline_s: float) -> None:
        """Start the first shards; the others follow as these end."""
        self._deadline_s = deadline_s
        self._waiting.extend(shards)
        self._fill()

    def collect_ended(self) -> list[EndedShard]:
        """Return the shards that ended since the last call, and start others in their place."""
        looked_at = [self._look_at(running) for running in self._running]
        self._running = [running for running in looked_at if isinstance(running, RunningShard)]
        self._fill()
        return [ended for ended in looked_at if isinstance(ended, EndedShard)]

    def list_running(self) -> list[RunShard]:
        """Return the shards that have started."""
        return [running.shard for running in self._running]

    def stop(self) -> None:
        """End all shards, and drop those that wait."""
        self._waiting.clear()
        _end(self._running)
        self._running = []

    def _fill(self) -> None:
        while self._waiting and len(self._running) < self._jobs:
            shard = self._waiting.popleft()
            self._running.append(_start(shard, time.monotonic() + self._deadline_s))

    def _look_at(self, running: RunningShard) -> RunningShard | EndedShard:
        """Return a shard that still runs, in a fresh process after a crash, or how it has ended."""
        code, shard = running.process.poll(), running.shard
        if code is None and time.monotonic() < running.deadline:
            return running
        _end([running])
        failure = describe_timeout(self._deadline_s) if code is None else settle_exit(shard, code)
        return _start(shard, running.deadline) if failure is None else EndedShard(shard, failure)


def _start(shard: RunShard, deadline: float) -> RunningShard:
    return RunningShard(shard, start_pytest(shard, shard.command, shard.environment), deadline)


class ForkedPytest:
    """A pytest that the forker has forked: of `subprocess.Popen`, what a shard needs."""

    def __init__(self, orders: socket.socket, order: str) -> None:
        """Let the forker start it. Raises OSError where it cannot."""
        self._answers, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            socket.send_fds(orders, [order.encode()], [theirs.fileno()])
        self.returncode: int | None = None
        if not (pid := self._answers.recv(32)):
            raise BrokenPipeError("the forker has died")
        self.pid = int(pid)

    def poll(self) -> int | None:
        """Return its exit code, None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code. Raises TimeoutExpired if it still runs then. It died with its forker if that died."""
        if self.returncode is None:
            try:
                self._answers.settimeout(timeout)
                self.returncode = int(self._answers.recv(32) or -signal.SIGKILL)
            except (BlockingIOError, TimeoutError):
                raise subprocess.TimeoutExpired("pytest", timeout or 0) from None
            self._answers.close()
        return self.returncode


ShardProcess = subprocess.Popen[bytes] | ForkedPytest


def keep_pytest_ready(folder: Path, is_needed: Callable[[], object]) -> None:
    """Start the forker, if this process has none yet: it imports pytest now. It ends when this process ends."""
    if sys.platform == "linux" and os.getpid() not in _FORKERS and is_needed():
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            _FORKERS[os.getpid()] = _popen(FORKER, folder, {}, stdin=theirs, stdout=subprocess.DEVNULL), ours


def start_pytest(shard: RunShard, command: Sequence[str], environment: Mapping[str, str]) -> ShardProcess:
    """Start a shard's pytest by `command`, with `environment` added. It ends when this process ends."""
    with shard.log.open("ab") as log:
        if command[:3] == PYTEST and (forker := _FORKERS.get(os.getpid())):
            added = {**os.environ, **ISOLATION_VARIABLES, **environment}
            with suppress(OSError):
                return ForkedPytest(forker[1], json.dumps([str(shard.folder), command[3:], added, str(shard.log)]))
            _FORKERS.pop(os.getpid(), None)  # it has died
        return _popen(command, shard.folder, environment, stdin=subprocess.DEVNULL, stdout=log)


def _popen(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], **streams: Any
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **ISOLATION_VARIABLES, **environment, PARENT_PID_VARIABLE: str(os.getpid())},
        stderr=subprocess.STDOUT,
        process_group=0,  # so that a signal reaches what it starts, too
        **streams,
    )


def _end(shards: Sequence[RunningShard]) -> None:
    """Interrupt processes as Ctrl-C does, so that they write what they have; then kill them with their children."""
    deadline = time.monotonic() + SHARD_INTERRUPT_GRACE_S
    for running in shards:
        _signal_group(running, signal.SIGINT)
    for running in shards:
        with suppress(subprocess.TimeoutExpired):
            running.process.wait(max(0.0, deadline - time.monotonic()))
        _signal_group(running, signal.SIGKILL)
        running.process.wait()


def _signal_group(running: RunningShard, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(running.process.pid, number)
