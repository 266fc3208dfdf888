"""Records how long passes took, in one SQLite file, so that a new process still knows it.

    .assay/passes.sqlite
      pass    stage, count, failures, seconds, cpu_seconds, ended_s: end of the last one by this machine's clock
      bucket  stage, edge: the place of an upper bound in PASS_EDGES, count: passes in this bucket alone

The file may be deleted: the counts start again.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Concatenate, Literal, ParamSpec, Protocol, TypeVar

from assay.act.actions.action import ActionContext
from assay.model.facts import frozen

PassStage = Literal["once", "observe", "decide", "act", "tickets", "jobs"]
PASS_EDGES = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0)
FILE_NAME = "passes.sqlite"
LOCK_TIMEOUT_S = 2.0
TABLES = """
CREATE TABLE IF NOT EXISTS pass (
    stage TEXT PRIMARY KEY, count INTEGER, failures INTEGER, seconds REAL, cpu_seconds REAL, ended_s REAL);
CREATE TABLE IF NOT EXISTS bucket (stage TEXT, edge INTEGER, count INTEGER, PRIMARY KEY (stage, edge));
"""
ADD_TO_TOTALS = """
INSERT INTO pass VALUES (?, 1, ?, ?, ?, ?) ON CONFLICT (stage) DO UPDATE SET
    count = count + 1, failures = failures + excluded.failures, seconds = seconds + excluded.seconds,
    cpu_seconds = cpu_seconds + excluded.cpu_seconds, ended_s = excluded.ended_s
"""
ADD_TO_BUCKET = "INSERT INTO bucket VALUES (?, ?, 1) ON CONFLICT (stage, edge) DO UPDATE SET count = count + 1"
P = ParamSpec("P")
R = TypeVar("R")


class _HasContext(Protocol):
    @property
    def context(self) -> ActionContext: ...


Source = TypeVar("Source", bound="ActionContext | _HasContext")


@frozen
class PassTotals:
    """All passes of one stage: their number in each bucket of PASS_EDGES, the slower ones last, and their sums.

    `ended_s` is when the last one ended (seconds since 1970, by this machine's clock).
    """

    buckets: tuple[int, ...]
    failures: int
    seconds: float
    cpu_seconds: float
    ended_s: float


def records_pass(
    stage: PassStage,
) -> Callable[[Callable[Concatenate[Source, P], R]], Callable[Concatenate[Source, P], R]]:
    """Decorate a function, so that each call counts as a pass of `stage`.

    Its first argument is the controller's context, or has it as `context`.
    """

    def decorate(function: Callable[Concatenate[Source, P], R]) -> Callable[Concatenate[Source, P], R]:
        @wraps(function)
        def recorded(source: Source, /, *args: P.args, **kwargs: P.kwargs) -> R:
            context = source if isinstance(source, ActionContext) else source.context
            with _measure_pass(context.home, stage):
                return function(source, *args, **kwargs)

        return recorded

    return decorate


@contextlib.contextmanager
def _measure_pass(home: Path, stage: PassStage) -> Iterator[None]:
    begun, cpu, failed = time.monotonic(), time.thread_time(), True
    try:
        yield
        failed = False
    finally:
        _add_pass(home, stage, time.monotonic() - begun, time.thread_time() - cpu, failed=failed)


def _add_pass(home: Path, stage: PassStage, seconds: float, cpu_seconds: float, *, failed: bool) -> None:
    """Count a pass. A full disk or a locked file must not stop one: what it decides does not need the file."""
    with contextlib.suppress(OSError, sqlite3.Error):
        home.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(sqlite3.connect(home / FILE_NAME, timeout=LOCK_TIMEOUT_S)) as data:
            data.execute("PRAGMA journal_mode = WAL")
            data.execute("PRAGMA synchronous = OFF")
            data.executescript(TABLES)
            with data:
                data.execute(ADD_TO_TOTALS, (stage, failed, seconds, cpu_seconds, time.time()))
                data.execute(ADD_TO_BUCKET, (stage, bisect_left(PASS_EDGES, seconds)))


def read_passes(home: Path) -> dict[str, PassTotals]:
    """Return the passes by stage; none if there is no file, or it cannot be read."""
    if not (home / FILE_NAME).exists():
        return {}
    try:
        with contextlib.closing(sqlite3.connect(home / FILE_NAME, timeout=LOCK_TIMEOUT_S)) as data:
            rows = data.execute("SELECT stage, failures, seconds, cpu_seconds, ended_s FROM pass").fetchall()
            counts = {(stage, edge): count for stage, edge, count in data.execute("SELECT * FROM bucket")}
    except sqlite3.Error:
        return {}
    places = range(len(PASS_EDGES) + 1)
    return {stage: PassTotals(tuple(counts.get((stage, place), 0) for place in places), *sums) for stage, *sums in rows}
