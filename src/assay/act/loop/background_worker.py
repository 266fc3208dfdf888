"""Background threads of the reconcile loop: one task at a time, a pause after failures, and throttles by name."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Thread

from assay.model.backoff import Backoff
from assay.model.errors import describe_error

FAILURE_BACKOFF = Backoff((1.0,), longest_s=60.0)


class FailureLog:
    """Counts failures in a row, says how long to pause after them, and reports each new reason once."""

    def __init__(self) -> None:
        self._count, self._resume_at, self._reported = 0, 0.0, ""

    @property
    def may_retry(self) -> bool:
        """Whether the pause after the last failure is over."""
        return time.monotonic() >= self._resume_at

    def record_failure(self, reason: str) -> str:
        """Count a failure and start its pause; return the reason if it differs from the last one, else ""."""
        self._count += 1
        self._resume_at = time.monotonic() + FAILURE_BACKOFF.wait_s(self._count)
        last, self._reported = self._reported, reason
        return "" if last == reason else reason

    def record_success(self) -> bool:
        """Forget the failures; return whether there were any."""
        had_failed = bool(self._reported)
        self._count, self._resume_at, self._reported = 0, 0.0, ""
        return had_failed


class BackgroundWorker:
    """One thread for one kind of task. It reports failures through `report` and pauses after them."""

    def __init__(self, name: str, report: Callable[[str], None]) -> None:
        self._name, self._report, self._failures = name, report, FailureLog()
        self._thread: Thread | None = None

    @property
    def is_free(self) -> bool:
        """Whether a task may start now."""
        return self._failures.may_retry and not self.is_busy

    @property
    def is_busy(self) -> bool:
        """Whether a task is running."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, task: Callable[[], object]) -> None:
        """Run a task in a daemon thread. The worker must be free."""
        self._thread = Thread(target=self._run, args=(task,), name=self._name, daemon=True)
        self._thread.start()

    def join(self, timeout_s: float) -> None:
        """Wait up to `timeout_s` seconds for the running task to end."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _run(self, task: Callable[[], object]) -> None:
        try:
            task()
        except Exception as error:  # whatever it is, the loop must continue
            if reason := self._failures.record_failure(describe_error(error)):
                self._report(f"{self._name}: {reason}")
        else:
            if self._failures.record_success():
                self._report(f"{self._name}: works again")


class IntervalThrottle:
    """Says for each name whether its interval has passed since it was last due."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def is_due(self, name: str, interval_s: float, now: float | None = None) -> bool:
        """Return whether `interval_s` has passed, and if so start the next interval.

        `now` is in seconds of any clock, by default of this machine's monotonic one. A clock that went back is due.
        """
        now = time.monotonic() if now is None else now
        if 0 <= now - self._last.get(name, float("-inf")) < interval_s:
            return False
        self._last[name] = now
        return True

    def reset(self, *names: str) -> None:
        """Make these names due."""
        for name in names:
            self._last.pop(name, None)

    def reset_all(self) -> None:
        """Make every name due."""
        self._last.clear()
