"""Runs the pairs of a round at the same time: each a fresh process in a session of its own, with a deadline.

A hung communicator leaves nothing behind that the next pair could meet.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from assay.collectives.pair_results import PairResult
from assay.collectives.runner.pair_command import CommandTemplate, PairTask, read_output
from assay.model.errors import AssayError

KILL_GRACE_S = 10.0
OUTPUT_CHARS = 200_000


class PairRunner:
    """Runs commands of one template. `scratch` is where nccl-tests writes its reports; the nodes must see it."""

    def __init__(self, template: CommandTemplate, deadline_s: float, at_once: int, scratch: Path | None = None) -> None:
        self._template, self._deadline_s, self._at_once, self._scratch = template, deadline_s, at_once, scratch
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._is_stopped = False

    def run(self, tasks: Sequence[PairTask], take: Callable[[PairResult], None]) -> None:
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

    def _run_one(self, task: PairTask, report: Path) -> PairResult:
        process = self._start(self._template.fill(task, report, self._deadline_s))
        if process is None:
            return task.make_result("interrupted")
        try:
            output, _ = process.communicate(timeout=self._deadline_s)
        except subprocess.TimeoutExpired:
            _kill_group(process)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=KILL_GRACE_S)
            return task.make_result("deadline", f"killed after {self._deadline_s:g} s")
        finally:
            _kill_group(process)
            with self._lock:
                self._running.discard(process)
        return read_output(task, process.returncode, output[-OUTPUT_CHARS:], report)

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
