"""Many slow questions at once: a bounded number of threads, answers as they come, no question waited for too long.

Threads, not asyncio: 200 subprocesses of 10 ms cost 0.18 CPU s in this process with threads and 0.25 s with
asyncio on Python 3.11 (two cores), and the redfish library is synchronous. They are daemon threads, so that one
which hangs in the resolver or in the kernel holds neither the pass nor the end of the program.

A question that has no answer after `PARK_AFTER_S` mostly waits: it steps aside, and the next one takes its place. So
a rack that is dead costs the living nothing. How many may wait aside is bounded, and none do while this machine is
crowded: then it is slow itself (a lab's nodes all live on it).
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WORKERS = 8 * max(2, os.cpu_count() or 2)
"""Questions at once: they mostly wait, but each has a deadline from its start, so they must not starve each other."""

MAX_PARKED_PER_WORKER = 16
"""How many times `workers` may wait aside: at most 256 on two cores, each a thread and perhaps a process of 5 MB."""

PARK_AFTER_S = 0.5
_GRACE_S = 1.0
_LOOK_S = 0.5

Key = tuple[str, str]


@dataclass(frozen=True)
class NodeQuery:
    """`ask` is called in some thread; `limit_s` is its own deadline, after which it is given up."""

    key: Key
    ask: Callable[[], Any]
    limit_s: float


@dataclass(frozen=True)
class _RunningQuery:
    question: NodeQuery
    patient_until: float
    ends_at: float


def run_queries(
    questions: Iterable[NodeQuery], workers: int = WORKERS, patience_s: float = PARK_AFTER_S
) -> Iterator[tuple[NodeQuery, Any]]:
    """Yield (question, answer) as they come, each exactly once; the answer may be the exception that was raised.

    Questions start in the order given. One that outlives its limit by a second answers TimeoutError and its thread
    is left behind.
    """
    waiting = deque(questions)
    asked: dict[Key, _RunningQuery] = {}
    answers: queue.SimpleQueue[tuple[NodeQuery, Any]] = queue.SimpleQueue()
    while waiting or asked:
        while waiting and _has_room(asked, workers):
            question = waiting.popleft()
            asked[question.key] = _start(question, answers, patience_s)
        try:
            question, answer = answers.get(timeout=max(0.0, _next_deadline(asked, bool(waiting)) - time.monotonic()))
        except queue.Empty:
            late = _overdue_query(asked)
            if late is None:
                continue
            question, answer = late, TimeoutError(f"no answer within {late.limit_s:g} s")
        if asked.pop(question.key, None) is not None:
            yield question, answer


def _has_room(asked: dict[Key, _RunningQuery], workers: int) -> bool:
    """Say whether one more may start: few are at work, or those that are have stepped aside."""
    if len(asked) < workers:
        return True
    now = time.monotonic()
    at_work = sum(one.patient_until > now for one in asked.values())
    return at_work < workers and len(asked) < workers * MAX_PARKED_PER_WORKER and not is_host_overloaded()


def is_host_overloaded() -> bool:
    """Say whether more threads of this machine could run now than it has cores for, four times over."""
    try:
        runnable = Path("/proc/loadavg").read_text().split()[3].partition("/")[0]
    except OSError:
        return False
    return int(runnable) > 4 * (os.cpu_count() or 1)


def _start(question: NodeQuery, answers: queue.SimpleQueue[tuple[NodeQuery, Any]], patience_s: float) -> _RunningQuery:
    threading.Thread(target=_answer, args=(question, answers), daemon=True).start()
    now = time.monotonic()
    return _RunningQuery(question, now + patience_s, now + question.limit_s + _GRACE_S)


def _next_deadline(asked: dict[Key, _RunningQuery], more: bool) -> float:
    """Return when something must be done though nobody answers: give one up, or see whether one more may start."""
    nearest = min(one.ends_at for one in asked.values())
    return min(nearest, time.monotonic() + _LOOK_S) if more else nearest


def _overdue_query(asked: dict[Key, _RunningQuery]) -> NodeQuery | None:
    now = time.monotonic()
    return next((one.question for one in asked.values() if one.ends_at <= now), None)


def _answer(question: NodeQuery, answers: queue.SimpleQueue[tuple[NodeQuery, Any]]) -> None:
    try:
        answers.put((question, question.ask()))
    except Exception as error:  # whatever went wrong belongs to this question only
        answers.put((question, error))
