"""Runs several reads of one BMC at once, in a bounded number of threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import Generic, Self, TypeVar

T = TypeVar("T")

HELP_AFTER_S = 0.25
"""A BMC that answers fast is read sooner by one thread, on one connection."""


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
        for one in started[1:] if self._helpers else []:
            self._waiting.put(one)  # type: ignore[arg-type]
        for one in started:
            one.run()
        return [one.result() for one in started]

    def _help(self) -> None:
        if self._ended.wait(HELP_AFTER_S):
            return
        while (one := self._waiting.get()) is not None:
            one.run()


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
