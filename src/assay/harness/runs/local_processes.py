"""Shards as processes of this machine: a queue of them, some at a time, each with a deadline."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from assay.harness.plugin import PARENT_PID_VARIABLE
from assay.harness.runs.sharding import EndedShard, RunShard, describe_exit, describe_timeout

SHARD_INTERRUPT_GRACE_S = 10.0
"""For what was interrupted to put its last outcomes on disk."""
ISOLATION_VARIABLES = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
"""Nothing that happens to be installed or set may change a run, or slow it; `-p` loads what the user asks for."""


@dataclass(frozen=True)
class RunningShard:
    """A shard that runs, and until when (monotonic seconds)."""

    shard: RunShard
    process: subprocess.Popen[bytes]
    until: float


class LocalProcesses:
    """`Shards` in at most `jobs` processes at a time. They end when this process does, however it ends."""

    def __init__(self, jobs: int) -> None:
        self._jobs, self._deadline_s = jobs, 0.0
        self._waiting, self._running = deque[RunShard](), list[RunningShard]()

    def start(self, shards: Sequence[RunShard], deadline_s: float) -> None:
        """Begin with the first; the others follow as these end."""
        self._deadline_s = deadline_s
        self._waiting.extend(shards)
        self._fill()

    def collect_ended(self) -> list[EndedShard]:
        """Return those that ended since the last look, and let others begin in their place."""
        over = [(one, how) for one in self._running if (how := self._describe_end(one)) is not None]
        self._running = [one for one in self._running if all(one is not other for other, _ in over)]
        self._fill()
        return [EndedShard(one.shard, how) for one, how in over]

    def list_running(self) -> list[RunShard]:
        """Return those that have begun."""
        return [one.shard for one in self._running]

    def stop(self) -> None:
        """End all, what waits too."""
        self._waiting.clear()
        _end(self._running)
        self._running = []

    def _fill(self) -> None:
        while self._waiting and len(self._running) < self._jobs:
            shard = self._waiting.popleft()
            process = start_pytest(shard, shard.command, shard.environment)
            self._running.append(RunningShard(shard, process, time.monotonic() + self._deadline_s))

    def _describe_end(self, one: RunningShard) -> str | None:
        """Return how a shard ended, None while it goes on."""
        code = one.process.poll()
        if code is None and time.monotonic() < one.until:
            return None
        _end([one])
        return describe_timeout(self._deadline_s) if code is None else describe_exit(code, one.shard.log)


def start_pytest(shard: RunShard, command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a shard's pytest by `command`, with `environment` on top of what is set. It ends when this process does."""
    with shard.log.open("ab") as out:
        return subprocess.Popen(
            command,
            cwd=shard.folder,
            env={**os.environ, **ISOLATION_VARIABLES, **environment, PARENT_PID_VARIABLE: str(os.getpid())},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            process_group=0,  # what it starts ends with it
        )


def _end(some: Sequence[RunningShard]) -> None:
    """Interrupt processes, as Ctrl-C does, so that they keep what they have; then kill them and what they started."""
    until = time.monotonic() + SHARD_INTERRUPT_GRACE_S
    for one in some:
        _signal(one, signal.SIGINT)
    for one in some:
        with suppress(subprocess.TimeoutExpired):
            one.process.wait(max(0.0, until - time.monotonic()))
        _signal(one, signal.SIGKILL)
        one.process.wait()


def _signal(one: RunningShard, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(one.process.pid, number)
