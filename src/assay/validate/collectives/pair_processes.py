"""Runs the collectives of a round at the same time: each a fresh process in its own session, with a deadline.

A hung communicator leaves nothing behind that the next one could meet. Nodes that a customer takes in the middle give
no result: `preempted`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from assay.model.errors import AssayError
from assay.validate.collectives.pair_command import CommandTemplate, read_output
from assay.validate.collectives.tasks import CollectiveTask, TaskResult

KILL_GRACE_S = 10.0
OUTPUT_CHARS = 200_000
PREEMPTED = "preempted"
FindTaker = Callable[[Sequence[str], float], str]
"""Who else uses some of these nodes, "" if nobody does, as read at this time (time.monotonic) or later."""
STATUS_AGE_S = 5.0
"""How old the answer may be where a run has not begun yet."""


def find_no_taker(nodes: Sequence[str], since: float) -> str:  # noqa: ARG001 — the signature of FindTaker
    """Return "": the nodes belong to the search until it ends."""
    return ""


class PairRunner:
    """Runs commands of one template. `scratch` is where nccl-tests writes its reports; the nodes must see it.

    `find_taker` says whether a customer has the nodes. `environment`: None passes on that of this process.
    """

    def __init__(
        self,
        template: CommandTemplate,
        deadline_s: float,
        at_once: int,
        scratch: Path | None = None,
        find_taker: FindTaker = find_no_taker,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._template, self._deadline_s, self._at_once, self._scratch = template, deadline_s, at_once, scratch
        self._find_taker, self._environment = find_taker, environment
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._is_stopped = False

    @property
    def has_rails(self) -> bool:
        """Whether the command runs on one rail."""
        return self._template.has_rails

    def run(self, tasks: Sequence[CollectiveTask], take: Callable[[TaskResult], None]) -> None:
        """Run all tasks, and give each result to `take` when it is there. An interrupt kills what runs."""
        with (
            tempfile.TemporaryDirectory(prefix="assay-pairs-", dir=self._scratch) as folder,
            ThreadPoolExecutor(max_workers=max(1, min(self._at_once, len(tasks)))) as pool,
            self._stopping_on_error(),
        ):
            futures = [pool.submit(self._run_one, task, Path(folder, f"{at}.json")) for at, task in enumerate(tasks)]
            try:
                for future in as_completed(futures):
                    take(future.result())
            except BaseException:
                for future in futures:
                    future.cancel()
                raise

    @contextlib.contextmanager
    def _stopping_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            with self._lock:
                self._is_stopped = True
                running = list(self._running)
            for process in running:
                _kill_group(process)
            raise

    def _run_one(self, task: CollectiveTask, report: Path) -> TaskResult:
        if taker := self._find_taker(task.nodes, time.monotonic() - STATUS_AGE_S):
            return task.make_result(PREEMPTED, taker)
        result, output = self._run_process(task, report)
        if result.ended == "ok":
            return result
        taker = self._template.find_taker(output) or self._find_taker(task.nodes, time.monotonic())
        return task.make_result(PREEMPTED, taker) if taker else result

    def _run_process(self, task: CollectiveTask, report: Path) -> tuple[TaskResult, str]:
        """Return the result of a process and what it printed."""
        process = self._start(self._template.fill(task, report, self._deadline_s))
        if process is None:
            return task.make_result("interrupted"), ""
        try:
            output, _ = process.communicate(timeout=self._deadline_s)
        except subprocess.TimeoutExpired as expired:
            _kill_group(process)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=KILL_GRACE_S)
            printed = (expired.output or b"").decode(errors="replace")
            return task.make_result("deadline", f"killed after {self._deadline_s:g} s"), printed[-OUTPUT_CHARS:]
        finally:
            _kill_group(process)
            with self._lock:
                self._running.discard(process)
        output = output[-OUTPUT_CHARS:]
        return read_output(task, process.returncode, output, report), output

    def _start(self, words: list[str]) -> subprocess.Popen[str] | None:
        """Return the started process, None after an interrupt. Raises AssayError if there is no such command."""
        with self._lock:
            if self._is_stopped:
                return None
            try:
                process = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    errors="replace",
                    start_new_session=True,
                    env=self._environment,
                )
            except OSError as error:
                fix = "name a command of this machine, such as srun or ssh"
                raise AssayError(
                    f"{words[0]} cannot be started: {error.strerror}", where="--command", fix=fix
                ) from None
            self._running.add(process)
            return process


def _kill_group(process: subprocess.Popen[str]) -> None:
    """Kill a process with all that it started. Its session has its own number, also after it ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
