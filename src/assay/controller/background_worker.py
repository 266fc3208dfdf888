"""Work that takes its time, beside a loop that must not wait for it: one thing at a time, and patience with trouble.

What is done now and then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from assay.model.errors import AssayError

FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0


class RetryBackoff:
    """How long to leave alone what failed: twice as long each time, and told once for each new reason."""

    def __init__(self) -> None:
        self._until, self._wait_s, self._told = 0.0, 0.0, ""

    @property
    def is_over(self) -> bool:
        """Whether it may be tried again."""
        return time.monotonic() >= self._until

    def record_failure(self, why: str) -> str:
        """Note a failure; return it where it is news, else ""."""
        self._wait_s = min(LONGEST_WAIT_S, self._wait_s * 2 or FIRST_WAIT_S)
        self._until = time.monotonic() + self._wait_s
        told, self._told = self._told, why
        return "" if told == why else why

    def record_success(self) -> bool:
        """Note that it worked; return whether it had failed before."""
        failed = bool(self._told)
        self._until, self._wait_s, self._told = 0.0, 0.0, ""
        return failed


class BackgroundWorker:
    """One thread's work. What goes wrong is told by `say`, and the lane is not free for a while."""

    def __init__(self, what: str, say: Callable[[str], None]) -> None:
        self._what, self._say, self._patience = what, say, RetryBackoff()
        self._thread: threading.Thread | None = None

    @property
    def is_free(self) -> bool:
        """Whether something may be begun now."""
        return self._patience.is_over and not self.is_busy

    @property
    def is_busy(self) -> bool:
        """Whether something is under way."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, work: Callable[[], object]) -> None:
        """Do it in a thread that ends with this process, however that ends. The lane must be free."""
        self._thread = threading.Thread(target=self._run, args=(work,), name=self._what, daemon=True)
        self._thread.start()

    def join(self, seconds: float) -> None:
        """Wait for what is under way, so long at the most."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:  # whatever it is, the loop goes on
            if told := self._patience.record_failure(describe_error(error)):
                self._say(f"{self._what}: {told}")
        else:
            if self._patience.record_success():
                self._say(f"{self._what}: works again")


def describe_error(error: Exception) -> str:
    """Return what went wrong, for people."""
    return (
        str(error) if isinstance(error, AssayError) else f"a mistake of assay itself: {type(error).__name__}: {error}"
    )


class IntervalThrottle:
    """When each thing was done last."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def is_due(self, what: str, every_s: float, now: float | None = None) -> bool:
        """Whether it is time again, by `now` or else in real seconds; then its next time is counted from now."""
        now = time.monotonic() if now is None else now
        if 0 <= now - self._last.get(what, float("-inf")) < every_s:
            return False
        self._last[what] = now
        return True

    def reset_all(self) -> None:
        """Let it be time for everything."""
        self._last.clear()

    def reset(self, what: str) -> None:
        """Let it be time at once."""
        self._last.pop(what, None)
