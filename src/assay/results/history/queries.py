"""Questions to history, each one SQL statement over the Parquet files of the days that it is about.

`History(home, now)` is opened once for many questions:

    with History(home(reports), clock.now()) as history:
        outcomes(history, Of(nodes=["n0007"]), days=90)      # every outcome, as it was recorded
        turns(history, Of(nodes=["n0007"]), days=90)         # where a verdict is another than the one before

The other questions: `flapping.flapping`, `noise.noise`, `rates.rates`.

How well each pool did, day by day.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.model.errors import AssayError
from assay.model.outcome import CheckVerdict, FailureArtefact, Measurement, Outcome, RecordedOutcome
from assay.results.history import parquet_files
from assay.results.history.parquet_files import ARTEFACTS_TABLE, MEASUREMENTS_TABLE, OUTCOMES_TABLE, connect_duckdb

if TYPE_CHECKING:
    from types import TracebackType

HistoryRow = tuple[Any, ...]
MAX_TRIES = 3
"""Files that became one while a question was on its way are looked up again."""
_FILTERED_ROWS = """
CREATE MACRO among(files, nodes, subjects, checks, fits) AS TABLE
SELECT * FROM read_parquet(files, hive_partitioning = true)
WHERE (nodes IS NULL OR list_contains(nodes, node))
  AND (subjects IS NULL OR list_contains(subjects, subject))
  AND (checks IS NULL OR list_contains(checks, check_))
  AND (fits IS NULL OR check_ GLOB fits OR check_ GLOB 'suites/' || fits
    OR split_part(check_, '::', 1) GLOB fits OR split_part(check_, '::', 1) GLOB 'suites/' || fits
    OR split_part(check_, '::', 2) GLOB fits OR split_part(check_, '::', 2) GLOB 'test_' || fits)
"""
"""What a question looks at. Planned with its values: row groups without a node that is asked for are not read."""


@dataclass(frozen=True)
class OutcomeQuery:
    """Whose outcomes: of these nodes, subjects and checks (none: all).

    `fits` is a glob of a check's id, its module or its function's name, with or without `suites/` and `test_`.
    """

    nodes: Collection[str] = ()
    subjects: Collection[str] = ()
    checks: Collection[str] = ()
    fits: str = ""

    def values(self) -> dict[str, object]:
        """Return what `among` is asked with; None leaves a column alone."""
        lists = {"nodes": self.nodes, "subjects": self.subjects, "checks": self.checks}
        return {name: list(names) or None for name, names in lists.items()} | {"fits": self.fits or None}


ALL_OUTCOMES = OutcomeQuery()


@dataclass(frozen=True, slots=True)
class VerdictTurn:
    """A check that said something else of a subject than in the run before that judged it; `was` is "" at first."""

    run: str
    at: str
    check: str
    subject: str
    node: str
    was: str
    verdict: CheckVerdict
    reason: str
    known: str
    observed: bool


@dataclass(frozen=True, slots=True)
class HistoryExtent:
    """How many outcomes of how many runs there are, and when the first and the last of these were ("" of none)."""

    runs: int
    outcomes: int
    first: str
    last: str


class OutcomeHistory:
    """The history below `home`, asked at the time `now`. Days are of UTC and count whole."""

    def __init__(self, home: Path, now: datetime) -> None:
        self.home, self.now = home, now
        self._database = connect_duckdb(temp_directory="")  # to ask writes nothing
        self._database.execute("SET parquet_metadata_cache = true")
        self._database.execute(_FILTERED_ROWS)

    def __enter__(self) -> OutcomeHistory:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._database.close()

    def ask(
        self,
        question: str,
        of: OutcomeQuery = ALL_OUTCOMES,
        *,
        days: int,
        table: str = OUTCOMES_TABLE,
        **values: object,
    ) -> list[HistoryRow]:
        """Ask in SQL, where `among($files, $nodes, $subjects, $checks, $fits)` are the rows of a table of outcomes.

        Raises Trouble for a file that cannot be read.
        """
        import duckdb

        for left in reversed(range(MAX_TRIES)):
            files: list[str] = []
            try:
                files = self._files(table, days)
                if not files:
                    return []
                given = {**values, **of.values(), "files": files}
                asked = {name: value for name, value in given.items() if f"${name}" in question}
                return self._database.execute(question, asked).fetchall()
            except (OSError, duckdb.Error) as error:
                if not left or (files and all(Path(file).exists() for file in files)):
                    raise self._trouble(files, error) from error
        raise AssertionError("the last try returns or raises")

    def _files(self, table: str, days: int) -> list[str]:
        since = (self.now - timedelta(days=days)).date()
        return [
            str(file.path)
            for day in parquet_files.list_day_folders(self.home, table, since)
            for file in parquet_files.list_parquet_files(day)
        ]

    def _trouble(self, files: list[str], error: Exception) -> AssayError:
        """Return what to tell: the first file that cannot be read alone, else what DuckDB says."""
        import duckdb

        for file in files:
            try:
                self._database.execute("SELECT count(COLUMNS(*)) FROM read_parquet($file)", {"file": file}).fetchall()
            except duckdb.Error:
                fix = "delete it: the next run writes it anew from reports/runs, as far as the run is still there"
                return AssayError("this part of history cannot be read", where=file, fix=fix)
        return AssayError(f"history cannot be asked: {error}", where=str(self.home))


def query_outcomes(
    history: OutcomeHistory, of: OutcomeQuery = ALL_OUTCOMES, *, days: int, measured: bool = False
) -> list[RecordedOutcome]:
    """Return outcomes by subject, check and run; with their measurements and artefacts only where `measured`."""
    numbers = _group_by_outcome(history.ask(_MEASUREMENTS, of, days=days, table=MEASUREMENTS_TABLE) if measured else [])
    kept = _group_by_outcome(history.ask(_ARTEFACTS, of, days=days, table=ARTEFACTS_TABLE) if measured else [])
    return [_read_outcome(row, numbers, kept) for row in history.ask(_OUTCOMES, of, days=days)]


def query_extent(history: OutcomeHistory, of: OutcomeQuery = ALL_OUTCOMES, *, days: int) -> HistoryExtent:
    """Return how much there is."""
    rows = history.ask(_JUDGED, of, days=days)
    return HistoryExtent(*rows[0]) if rows else HistoryExtent(0, 0, "", "")


def query_turns(history: OutcomeHistory, of: OutcomeQuery = ALL_OUTCOMES, *, days: int) -> list[VerdictTurn]:
    """Return where a verdict is another than the one before, oldest first; a first pass is none."""
    return [VerdictTurn(*row) for row in history.ask(_TURNS, of, days=days)]


def _group_by_outcome(rows: list[HistoryRow]) -> dict[HistoryRow, list[HistoryRow]]:
    """Return what belongs to each outcome: run, check and subject → rows."""
    found: dict[HistoryRow, list[HistoryRow]] = defaultdict(list)
    for row in rows:
        found[row[:3]].append(row[3:])
    return found


def _read_outcome(
    row: HistoryRow, numbers: dict[HistoryRow, list[HistoryRow]], kept: dict[HistoryRow, list[HistoryRow]]
) -> RecordedOutcome:
    (
        run,
        at,
        check,
        subject,
        node,
        verdict,
        reason,
        fault,
        phases,
        active,
        evidence,
        seen_at,
        micros,
        known,
        observed,
    ) = row
    key = (run, check, subject)
    return RecordedOutcome(
        run,
        at,
        Outcome(
            check,
            subject,
            node,
            verdict,
            reason,
            fault,
            _phases(phases),
            active,
            evidence,
            seen_at,
            micros / 1e6,
            tuple(Measurement(*one) for one in numbers[key]) if key in numbers else (),
            known,
            observed,
            tuple(FailureArtefact(*one) for one in kept[key]) if key in kept else (),
        ),
    )


@cache
def _phases(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


_OUTCOMES = """
SELECT run, run_at, check_, subject, node, verdict, reason, fault, phases, active, evidence, evidence_at, micros,
  known, observed
FROM among($files, $nodes, $subjects, $checks, $fits) ORDER BY subject, check_, run
"""
_MEASUREMENTS = """
SELECT run, check_, subject, name, value, unit, at_least, at_most, source
FROM among($files, $nodes, $subjects, $checks, $fits) ORDER BY run, subject, check_, n
"""
_ARTEFACTS = """
SELECT run, check_, subject, name, digest, bytes
FROM among($files, $nodes, $subjects, $checks, $fits) ORDER BY run, subject, check_, name
"""
_JUDGED = """
SELECT count(DISTINCT run), count(*), coalesce(min(run_at), ''), coalesce(max(run_at), '')
FROM among($files, $nodes, $subjects, $checks, $fits)
"""
_TURNS = """
SELECT run, run_at, check_, subject, node, coalesce(was, ''), verdict, reason, known, observed
FROM (
  SELECT *, lag(verdict) OVER (PARTITION BY check_, subject ORDER BY run) AS was
  FROM among($files, $nodes, $subjects, $checks, $fits)
)
WHERE verdict <> coalesce(was, 'pass') ORDER BY run, subject, check_
"""


_RATES = """
SELECT day::DATE, pool, count(DISTINCT run), count_if(verdict = 'pass'), count_if(verdict = 'fail' AND known = ''),
  count_if(verdict = 'fail' AND known <> ''), count_if(verdict = 'error'), count_if(verdict = 'skip')
FROM among($files, $nodes, $subjects, $checks, $fits) WHERE NOT observed GROUP BY ALL ORDER BY ALL
"""


@dataclass(frozen=True, slots=True)
class PoolDayRate:
    """The outcomes of a pool on a day, of so many runs. `known` failed too, but a known issue excuses it.

    Checks at stage observe are left out; `pool` is what a subject begins with.
    """

    day: date
    pool: str
    runs: int
    passed: int
    failed: int
    known: int
    errors: int
    skipped: int

    @property
    def success(self) -> float | None:
        """The share that passed of all that decides; None where nothing does."""
        decides = self.passed + self.failed + self.errors
        return self.passed / decides if decides else None


def query_pool_rates(history: OutcomeHistory, of: OutcomeQuery = ALL_OUTCOMES, *, days: int = 30) -> list[PoolDayRate]:
    """Return the pools' outcomes by day, oldest first."""
    return [PoolDayRate(*row) for row in history.ask(_RATES, of, days=days)]
