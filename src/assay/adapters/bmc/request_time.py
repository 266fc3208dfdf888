"""How long the requests of one session may take, and how many of them run at once.

All end by one deadline, or by as much as the BMC's size needs.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from queue import SimpleQueue
from typing import Generic, Self, TypeVar

from assay.adapters.bmc.errors import BmcUnreachable

T = TypeVar("T")

HELP_AFTER_S = 0.25
"""A BMC that answers fast is read sooner by one thread, on one connection."""
REQUEST_TIMEOUT_S = 30.0
"""Limit on one request of an action."""
READS_AT_ONCE = 4
"""GETs at once to one BMC: the web servers of BMCs have few threads."""
ANSWER_S = 0.25
"""The least time that each answer of a BMC adds for the others; a slower one adds as long as it took."""
LONGEST_READ = 12
"""No BMC is read for longer than so many times the deadline."""


class RequestTime:
    """The time limits of one session. Under `patience`, a resource that hangs costs only its own request's limit.

    After as many requests in a row without an answer as there are at once, the BMC counts as silent, and is left alone.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._lock = threading.Lock()
        self._ends_at, self._limit_s = float("inf"), REQUEST_TIMEOUT_S
        self._request_s = float("inf")
        self._most_at = float("inf")
        self._unanswered, self._at_once = 0, 1
        self.is_silent = False
        """Whether the BMC answers no more: after as many requests as run at once."""

    @contextlib.contextmanager
    def deadline(self, seconds: float, of: float | None = None) -> Iterator[None]:
        """Bound all requests of the block by one moment. `of` is the limit to name, where `seconds` is its rest."""
        before = self._ends_at, self._limit_s
        if (ends_at := time.monotonic() + seconds) < self._ends_at:
            self._ends_at, self._limit_s = ends_at, of or seconds
        try:
            yield
        finally:
            self._ends_at, self._limit_s = before

    @contextlib.contextmanager
    def patience(self, seconds: float, at_once: int = READS_AT_ONCE) -> Iterator[None]:
        """Bound each request of the block by `seconds`; all of them by that and the time that answers took.

        A BMC that answers at all is so read whole, or for LONGEST_READ times `seconds`.
        """
        self._most_at = min(time.monotonic() + LONGEST_READ * seconds, self._ends_at)
        with self.deadline(seconds):
            self._request_s, self._at_once = seconds, at_once
            try:
                yield
            finally:
                self._request_s, self._most_at, self._at_once = float("inf"), float("inf"), 1

    def left(self, at_most_s: float) -> float:
        """Return how long the next request may take. Raises BmcUnreachable where no time is left."""
        left = self._ends_at - time.monotonic()
        is_given_up = self.is_silent and self._is_patient
        if left <= 0 or is_given_up:
            limit_s = self._request_s if is_given_up else self._limit_s
            raise BmcUnreachable(f"no answer within {limit_s:g} s", where=self._where)
        return min(at_most_s, left, self._request_s)

    def is_over(self) -> bool:
        """Return whether the time of the block is over, or a clock's tick before that."""
        return time.monotonic() >= self._ends_at - 0.01

    def name_limit(self, request_s: float) -> float:
        """Return the limit to name for a request that got no answer within `request_s`: its own, or the block's."""
        was_cut = self._is_patient and request_s < self._request_s
        return self._limit_s if was_cut or self.is_over() else request_s

    def note_answer(self, took_s: float = 0.0) -> None:
        """Note that the BMC answered: under `patience` it gets time for one more resource."""
        with self._lock:
            self.is_silent, self._unanswered = False, 0
            if self._is_patient:
                more_s = max(ANSWER_S, took_s)
                self._ends_at = min(self._ends_at + more_s, self._most_at)
                self._limit_s = min(self._limit_s + more_s, LONGEST_READ * self._request_s)

    def note_silence(self) -> None:
        """Note that a request got no answer."""
        with self._lock:
            self._unanswered += 1
            self.is_silent = self._unanswered >= self._at_once

    @property
    def _is_patient(self) -> bool:
        return self._request_s < float("inf")


class ParallelReads:
    """Threads that help the calling one. A read may itself gather reads: who waits for a read runs it if nobody does.

    The threads are daemons, so a BMC that hangs does not hold up the end of the program.
    """

    def __init__(self, at_once: int) -> None:
        self._waiting: SimpleQueue[OneRead[object] | None] = SimpleQueue()
        self._ended = threading.Event()
        self._helpers = [threading.Thread(target=self._help, daemon=True) for _ in range(at_once - 1)]

    def __enter__(self) -> Self:
        for helper in self._helpers:
            helper.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for _helper in self._helpers:
            self._waiting.put(None)

    def gather(self, reads: Iterable[Callable[[], T]]) -> list[T]:
        """Run the reads and return their results in order. Raises what the first that failed raised."""
        started = [OneRead(read) for read in reads]
        for read in started[1:] if self._helpers else []:
            self._waiting.put(read)  # type: ignore[arg-type]
        for read in started:
            read.run()
        return [read.result() for read in started]

    def _help(self) -> None:
        if self._ended.wait(HELP_AFTER_S):
            return
        while (read := self._waiting.get()) is not None:
            read.run()


class OneRead(Generic[T]):
    """A read that runs once, in the first thread that asks; later ones get the same result, or the same error."""

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read
        self._claimed = threading.Lock()
        self._done = threading.Event()
        self._results: list[T] = []
        self._error: Exception | None = None

    def run(self) -> None:
        """Run the read unless it was begun."""
        if not self._claimed.acquire(blocking=False):
            return
        try:
            self._results.append(self._read())
        except Exception as error:
            self._error = error
        finally:
            self._done.set()

    def result(self) -> T:
        """Return the read's result, or raise its error."""
        self.run()
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._results[0]
