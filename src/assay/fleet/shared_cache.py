"""Asks what is slow or disturbs others only once, however many threads want to know."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from assay.model.errors import AssayError

T = TypeVar("T")


class SharedAnswerCache(Generic[T]):
    """Keeps each answer, and each refusal, for some seconds; who asks while it is being fetched waits for it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._answers: dict[Hashable, tuple[float, T | AssayError]] = {}
        self._locks: dict[Hashable, threading.Lock] = defaultdict(threading.Lock)
        self._guard = threading.Lock()

    def __call__(self, question: Hashable, ask: Callable[[], T]) -> T:
        """Return the answer to a question. Raises the Trouble that it came to."""
        with self._guard:
            lock = self._locks[question]
        with lock:
            known = self._answers.get(question)
            if known is None or time.monotonic() - known[0] > self._seconds:
                known = self._answers[question] = (time.monotonic(), _answer(ask))
        if isinstance(known[1], AssayError):
            raise AssayError(known[1].what, where=known[1].where, fix=known[1].fix)
        return known[1]


def _answer(ask: Callable[[], T]) -> T | AssayError:
    try:
        return ask()
    except AssayError as trouble:
        return trouble
