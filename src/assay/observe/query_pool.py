"""Runs many slow queries at once in a bounded number of threads, and gives answers as they come.

A query without an answer after `PARK_AFTER_S` mostly waits for the network: it is parked, and the next one takes its
place, so a dead rack does not delay the others. The number of parked queries is bounded. While this machine is
overloaded nothing is parked: then queries are slow because of it.
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
"""Queries at once. They mostly wait, but each has a deadline from its start, so they must not starve each other."""

MAX_PARKED_PER_WORKER = 16
"""Limit on started queries, in multiples of `workers`: 256 on two cores, each a thread and maybe a process of 5 MB."""

PARK_AFTER_S = 0.5
_GRACE_S = 1.0
_INTERRUPT_S = 1.0  # Ctrl-C just before a blocking wait is seen only after it
_POLL_S = 0.5

Key = tuple[str, str]


@dataclass(frozen=True)
class NodeQuery:
    """A query. `ask` runs in some thread and is given up after `limit_s`. `key` is a node's name and a channel."""

    key: Key
    ask: Callable[[], Any]
    limit_s: float


@dataclass(frozen=True)
class _RunningQuery:
    query: NodeQuery
    parked_at: float
    ends_at: float


def run_queries(
    queries: Iterable[NodeQuery], workers: int = WORKERS, patience_s: float = PARK_AFTER_S
) -> Iterator[tuple[NodeQuery, Any]]:
    """Yield (query, answer) as they come, each exactly once; the answer may be the exception that was raised.

    Queries start in the given order. A query that exceeds its limit by a second answers TimeoutError. Its thread is a
    daemon and is left behind, so a hang in the resolver or the kernel does not hold up the pass or the program's end.

    Threads, not asyncio: 200 subprocesses of 10 ms cost 0.18 CPU s here with threads and 0.25 s with asyncio (Python
    3.11, two cores), and the redfish library is synchronous.
    """
    waiting = deque(queries)
    running: dict[Key, _RunningQuery] = {}
    answers: queue.SimpleQueue[tuple[NodeQuery, Any]] = queue.SimpleQueue()
    while waiting or running:
        while waiting and _may_start(running, workers):
            query = waiting.popleft()
            running[query.key] = _start(query, answers, patience_s)
        try:
            left_s = _next_deadline(running, bool(waiting)) - time.monotonic()
            query, answer = answers.get(timeout=min(max(0.0, left_s), _INTERRUPT_S))
        except queue.Empty:
            late = _overdue_query(running)
            if late is None:
                continue
            query, answer = late, TimeoutError(f"no answer within {late.limit_s:g} s")
        if running.pop(query.key, None) is not None:
            yield query, answer


def _may_start(running: dict[Key, _RunningQuery], workers: int) -> bool:
    """Return whether one more query may start: few run, or enough of them are parked."""
    if len(running) < workers:
        return True
    now = time.monotonic()
    active = sum(entry.parked_at > now for entry in running.values())
    return active < workers and len(running) < workers * MAX_PARKED_PER_WORKER and not is_host_overloaded()


def is_host_overloaded() -> bool:
    """Return whether more than four threads for each core of this machine are runnable now."""
    try:
        runnable = Path("/proc/loadavg").read_text().split()[3].partition("/")[0]
    except OSError:
        return False
    return int(runnable) > 4 * (os.cpu_count() or 1)


def _start(query: NodeQuery, answers: queue.SimpleQueue[tuple[NodeQuery, Any]], patience_s: float) -> _RunningQuery:
    threading.Thread(target=_answer, args=(query, answers), daemon=True).start()
    now = time.monotonic()
    return _RunningQuery(query, now + patience_s, now + query.limit_s + _GRACE_S)


def _next_deadline(running: dict[Key, _RunningQuery], more: bool) -> float:
    """Return when to act without an answer: to give up a query or, if `more` wait, to see whether one may start."""
    nearest = min(entry.ends_at for entry in running.values())
    return min(nearest, time.monotonic() + _POLL_S) if more else nearest


def _overdue_query(running: dict[Key, _RunningQuery]) -> NodeQuery | None:
    now = time.monotonic()
    return next((entry.query for entry in running.values() if entry.ends_at <= now), None)


def _answer(query: NodeQuery, answers: queue.SimpleQueue[tuple[NodeQuery, Any]]) -> None:
    try:
        answers.put((query, query.ask()))
    except Exception as error:  # any error is the answer of this query alone
        answers.put((query, error))
