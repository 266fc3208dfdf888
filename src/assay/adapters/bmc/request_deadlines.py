"""Cuts what takes too long: one thread for all deadlines of this process, instead of a timer's thread for each request.

A deadline that was met stays in the queue until it would have passed, so meeting it wakes nobody.
"""

from __future__ import annotations

import heapq
import os
import time
from collections.abc import Callable
from itertools import count
from threading import Condition, Lock, Thread

LONGEST_S = 86400.0


class RequestDeadline:
    """One deadline: `cut` is called when it passes, unless it was met before."""

    def __init__(self, cut: Callable[[], None]) -> None:
        self._lock, self._cut, self.is_over = Lock(), cut, False

    def meet(self) -> None:
        """End it. Afterwards no cut is in progress, nor will one come."""
        with self._lock:
            self.is_over, self._cut = True, _keep  # it may stay in the queue: let go of the connection

    def pass_by(self) -> None:
        """Cut, unless it is over."""
        with self._lock:
            if not self.is_over:
                self.is_over = True
                self._cut()


def _keep() -> None:
    return


class DeadlineThread:
    """The thread that waits for the next deadline. It starts with the first one, and lives as long as the process."""

    def __init__(self) -> None:
        self._changed, self._numbers = Condition(Lock()), count()
        self._queue: list[tuple[float, int, RequestDeadline]] = []
        self._is_started = False

    def start(self, seconds: float, cut: Callable[[], None]) -> RequestDeadline:
        """Return a deadline that passes in so many seconds, a day at the most."""
        deadline, due = RequestDeadline(cut), time.monotonic() + min(max(seconds, 0.0), LONGEST_S)
        with self._changed:
            heapq.heappush(self._queue, (due, next(self._numbers), deadline))
            if not self._is_started:
                self._is_started = True
                Thread(target=self._run, name="request deadlines", daemon=True).start()
            elif self._queue[0][2] is deadline:
                self._changed.notify()
        return deadline

    def _run(self) -> None:
        while True:
            self._take_next().pass_by()

    def _take_next(self) -> RequestDeadline:
        """Wait for the next deadline that passes."""
        with self._changed:
            while True:
                while self._queue and self._queue[0][2].is_over:
                    heapq.heappop(self._queue)
                left = self._queue[0][0] - time.monotonic() if self._queue else None
                if left is not None and left <= 0:
                    return heapq.heappop(self._queue)[2]
                self._changed.wait(left)


DEADLINES = DeadlineThread()
os.register_at_fork(after_in_child=DEADLINES.__init__)  # type: ignore[misc] # no thread of the parent lives in the child
