"""Queries of history, each one SQL statement over the Parquet files of the days in question.

with OutcomeHistory(history_folder(reports), clock.now()) as history:
    query_turns(history, OutcomeQuery(nodes=["n0007"]), days=90)  # where a verdict differs from the one before

A check is flaky on a subject when its verdict turned between pass and fail at least MIN_FLAKY_TURNS times in its last
WINDOW_RUNS verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.ledger.history import parquet_files
from assay.ledger.history.parquet_files import MAX_TRIES, OUTCOMES_TABLE, DamagedFilesError, connect_duckdb, is_readable
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.outcome import CheckVerdict

if TYPE_CHECKING:
    from types import TracebackType


HistoryRow = tuple[Any, ...]
_FILTERED_ROWS = """
CREATE MACRO among(files, nodes, subjects, checks, pattern) AS TABLE
SELECT * FROM read_parquet(files, hive_partitioning = true)
WHERE (nodes IS NULL OR list_contains(nodes, node))
  AND (subjects IS NULL OR list_contains(subjects, subject))
  AND (checks IS NULL OR list_contains(checks, check_))
  AND (pattern IS NULL OR check_ GLOB pattern OR check_ GLOB 'suites/' || pattern
    OR split_part(check_, '::', 1) GLOB pattern OR split_part(check_, '::', 1) GLOB 'suites/' || pattern
    OR split_part(check_, '::', 2) GLOB pattern OR split_part(check_, '::', 2) GLOB 'test_' || pattern)
"""
"""The rows of a query. The macro is planned with its values, so row groups without any of the nodes are not read."""


@dataclass(frozen=True)
class OutcomeQuery:
    """Outcomes of these nodes, subjects and checks (none: all).

    `pattern` is a glob of a check's id, its module or its function's name, with or without `suites/` and `test_`.
    """

    nodes: Collection[str] = ()
    subjects: Collection[str] = ()
    checks: Collection[str] = ()
    pattern: str = ""

    def values(self) -> dict[str, object]:
        """Return the arguments of the macro `among`; None does not restrict."""
        lists = {"nodes": self.nodes, "subjects": self.subjects, "checks": self.checks}
        return {name: list(names) or None for name, names in lists.items()} | {"pattern": self.pattern or None}


ALL_OUTCOMES = OutcomeQuery()


@frozen
class VerdictTurn:
    """A verdict that differs from the one before of the same check and subject, `was`, which is "" for the first."""

    run: str
    """The id of the run."""
    at: str
    """When it was judged: ISO 8601."""
    check: str
    """The id of the check."""
    subject: str
    """What was judged: a node or a part of it."""
    node: str
    """The node of the subject."""
    was: str
    verdict: CheckVerdict
    """The verdict."""
    reason: str
    """Why the verdict is so; "" for a pass."""
    known: str
    """The known issue that excuses a failure; "" for none."""
    observed: bool
    """Whether the check is at stage observe, so that it decides nothing."""


@frozen
class HistoryExtent:
    """The number of runs and outcomes, and the times of the first and last run ("" for none)."""

    runs: int
    outcomes: int
    first: str
    last: str


class OutcomeHistory:
    """The history in `home`, queried at the time `now`. Days are UTC and count completely.

    `skipped` receives the error of each damaged file, which is left out then; without it, the first one is raised.
    """

    def __init__(self, home: Path, now: datetime, skipped: Callable[[AssayError], None] | None = None) -> None:
        self.home = home
        self.now = now
        self._skipped = skipped
        self._damaged = set[str]()
        self._database = connect_duckdb(temp_directory="")  # queries write nothing
        self._database.execute("SET parquet_metadata_cache = true")
        self._database.execute(_FILTERED_ROWS)

    def __enter__(self) -> OutcomeHistory:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._database.close()

    def fetch(
        self,
        sql: str,
        query: OutcomeQuery = ALL_OUTCOMES,
        *,
        days: int,
        table: str = OUTCOMES_TABLE,
        **values: object,
    ) -> list[HistoryRow]:
        """Return the rows of a query in SQL, where `among($files, $nodes, $subjects, $checks, $pattern)` is the table.

        Raises AssayError for a file that cannot be read.
        """
        import duckdb

        for left in reversed(range(MAX_TRIES)):
            files: list[str] = []
            try:
                files = self._files(table, days)
                if not files:
                    return []
                available = {**values, **query.values(), "files": files}
                used = {name: value for name, value in available.items() if f"${name}" in sql}
                return self._database.execute(sql, used).fetchall()
            except (OSError, duckdb.Error) as error:
                if not left or (files and all(Path(file).exists() for file in files)):
                    self._leave_out_damaged(files, error)
                    return self.fetch(sql, query, days=days, table=table, **values)
        raise AssertionError("the last try returns or raises")

    def _files(self, table: str, days: int) -> list[str]:
        since = (self.now - timedelta(days=days)).date()
        return [
            str(file.path)
            for day in parquet_files.list_day_folders(self.home, table, since)
            for file in parquet_files.list_parquet_files(day)
            if str(file.path) not in self._damaged
        ]

    def _leave_out_damaged(self, files: list[str], error: Exception) -> None:
        """Leave out the files that cannot be read by themselves. Raises AssayError where there is none."""
        damaged = [file for file in files if not is_readable(self._database, file)]
        if not damaged:
            raise AssayError(f"history cannot be queried: {error}", where=str(self.home)) from error
        for file in damaged:
            problem = DamagedFilesError([file])
            if self._skipped is None:
                raise problem from error
            self._skipped(problem)
        self._damaged.update(damaged)


def query_extent(history: OutcomeHistory, query: OutcomeQuery = ALL_OUTCOMES, *, days: int) -> HistoryExtent:
    """Return the extent of the outcomes in question."""
    rows = history.fetch(_JUDGED, query, days=days)
    return HistoryExtent(*rows[0]) if rows else HistoryExtent(0, 0, "", "")


def query_turns(history: OutcomeHistory, query: OutcomeQuery = ALL_OUTCOMES, *, days: int) -> list[VerdictTurn]:
    """Return the turns of verdicts, oldest first. A first verdict is one unless it is a pass."""
    return [VerdictTurn(*row) for row in history.fetch(_TURNS, query, days=days)]


_JUDGED = """
SELECT count(DISTINCT run), count(*), coalesce(min(run_at), ''), coalesce(max(run_at), '')
FROM among($files, $nodes, $subjects, $checks, $pattern)
"""
_TURNS = """
SELECT run, run_at, check_, subject, node, coalesce(was, ''), verdict, reason, known, observed
FROM (
  SELECT *, lag(verdict) OVER (PARTITION BY check_, subject ORDER BY run) AS was
  FROM among($files, $nodes, $subjects, $checks, $pattern)
)
WHERE verdict <> coalesce(was, 'pass') ORDER BY run, subject, check_
"""


WINDOW_RUNS = 10
"""Number of verdicts that the rule looks at."""
MIN_FLAKY_TURNS = 3
"""For example pass, fail, pass, fail. A part that broke once and was repaired once has turned twice."""


def count_flaky_turns(verdicts: Sequence[str]) -> int:
    """Return how often the verdicts, in order, turned; 0 where that is too seldom to be flaky.

    `verdicts` are the last WINDOW_RUNS of `pass` and `fail`: errors and skips say nothing of the part.
    """
    turns = sum(earlier != later for earlier, later in pairwise(verdicts))
    return turns if turns >= MIN_FLAKY_TURNS else 0


_LAST_VERDICTS = """
WITH
  failed AS MATERIALIZED (
    SELECT DISTINCT check_, subject FROM among($files, $nodes, $subjects, $checks, $pattern) WHERE verdict = 'fail'
  ),
  aged AS (
    SELECT check_, subject, node, run, run_at, verdict,
      row_number() OVER (PARTITION BY check_, subject ORDER BY run DESC) AS age
    FROM among($files, $nodes, $subjects, $checks, $pattern) SEMI JOIN failed USING (check_, subject)
    WHERE verdict IN ('pass', 'fail')
  )
SELECT check_, subject, any_value(node), list(verdict ORDER BY age), min(run_at), max(run_at)
FROM aged WHERE age <= $most GROUP BY check_, subject
HAVING 2 * least(count_if(verdict = 'fail'), count_if(verdict = 'pass')) >= $least
"""
"""The last verdicts of what may be flaky: verdicts turn at most twice as often as the rarer one occurs."""


@frozen
class FlakyCheck:
    """A check whose verdict on a subject turned `times` times in the last `judged` verdicts; `verdict` is the newest.

    Only pass and fail count: an error or a skip says nothing. `first` and `last` are their times (ISO 8601).
    """

    check: str
    """The id of the check."""
    subject: str
    """What was judged: a node, a part of it, a rack or a fabric."""
    node: str
    """The node of the subject; "" for a rack or a fabric."""
    times: int
    judged: int
    verdict: CheckVerdict
    first: str
    last: str


def query_flaky_checks(
    history: OutcomeHistory, query: OutcomeQuery = ALL_OUTCOMES, *, days: int = 90
) -> list[FlakyCheck]:
    """Return the flaky checks, those that turned most often first."""
    rows = history.fetch(_LAST_VERDICTS, query, days=days, most=WINDOW_RUNS, least=MIN_FLAKY_TURNS)
    flaky = [
        FlakyCheck(check, subject, node, turns, len(verdicts), verdicts[0], first, last)
        for check, subject, node, verdicts, first, last in rows
        if (turns := count_flaky_turns(verdicts))
    ]
    return sorted(flaky, key=lambda check: (-check.times, check.subject, check.check))
