"""Runs a slow question once for many threads, and keeps the answer for some seconds."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from assay.model.errors import AssayError

T = TypeVar("T")


class SharedAnswerCache(Generic[T]):
    """Keeps each answer, and each AssayError, for `seconds`. Threads that ask meanwhile wait for the first one."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._answers: dict[Hashable, tuple[float, T | AssayError]] = {}
        self._locks: dict[Hashable, threading.Lock] = defaultdict(threading.Lock)
        self._guard = threading.Lock()

    def __call__(self, question: Hashable, ask: Callable[[], T]) -> T:
        """Return the answer to a question: a cached one, or what `ask` returns. Raises the AssayError of `ask`."""
        with self._guard:
            lock = self._locks[question]
        with lock:
            cached = self._answers.get(question)
            if cached is None or time.monotonic() - cached[0] > self._seconds:
                cached = self._answers[question] = (time.monotonic(), _call(ask))
        answer = cached[1]
        if isinstance(answer, AssayError):
            raise AssayError(answer.what, where=answer.where, fix=answer.fix)
        return answer

    def clear(self) -> None:
        """Forget every answer."""
        self._answers.clear()


def _call(ask: Callable[[], T]) -> T | AssayError:
    try:
        return ask()
    except AssayError as error:
        return error
