"""Questions to history, each one SQL statement over the Parquet files of the days that it is about.

`History(home, now)` is opened once for many questions:

    with History(home(reports), clock.now()) as history:
        outcomes(history, Of(nodes=["n0007"]), days=90)      # every outcome, as it was recorded
        turns(history, Of(nodes=["n0007"]), days=90)         # where a verdict is another than the one before

The other questions: `flapping.flapping`, `noise.noise`, `rates.rates`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.harness.history import places
from assay.harness.history.duck import duck
from assay.harness.history.places import ARTEFACTS, MEASUREMENTS, OUTCOMES
from assay.model.errors import Trouble
from assay.model.outcome import Artefact, Measurement, Outcome, Recorded, Verdict

if TYPE_CHECKING:
    from types import TracebackType

Row = tuple[Any, ...]
TRIES = 3
"""Files that became one while a question was on its way are looked up again."""
_AMONG = """
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
class Of:
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


ALL = Of()


@dataclass(frozen=True, slots=True)
class Turn:
    """A check that said something else of a subject than in the run before that judged it; `was` is "" at first."""

    run: str
    at: str
    check: str
    subject: str
    node: str
    was: str
    verdict: Verdict
    reason: str
    known: str
    observed: bool


@dataclass(frozen=True, slots=True)
class Judged:
    """How many outcomes of how many runs there are, and when the first and the last of these were ("" of none)."""

    runs: int
    outcomes: int
    first: str
    last: str


class History:
    """The history below `home`, asked at the time `now`. Days are of UTC and count whole."""

    def __init__(self, home: Path, now: datetime) -> None:
        self.home, self.now = home, now
        self._database = duck(temp_directory="")  # to ask writes nothing
        self._database.execute("SET parquet_metadata_cache = true")
        self._database.execute(_AMONG)

    def __enter__(self) -> History:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._database.close()

    def ask(self, question: str, of: Of = ALL, *, days: int, table: str = OUTCOMES, **values: object) -> list[Row]:
        """Ask in SQL, where `among($files, $nodes, $subjects, $checks, $fits)` are the rows of a table of outcomes.

        Raises Trouble for a file that cannot be read.
        """
        import duckdb

        for left in reversed(range(TRIES)):
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
        return [str(file.path) for day in places.days(self.home, table, since) for file in places.files(day)]

    def _trouble(self, files: list[str], error: Exception) -> Trouble:
        """Return what to tell: the first file that cannot be read alone, else what DuckDB says."""
        import duckdb

        for file in files:
            try:
                self._database.execute("SELECT count(COLUMNS(*)) FROM read_parquet($file)", {"file": file}).fetchall()
            except duckdb.Error:
                fix = "delete it: the next run writes it anew from reports/runs, as far as the run is still there"
                return Trouble("this part of history cannot be read", where=file, fix=fix)
        return Trouble(f"history cannot be asked: {error}", where=str(self.home))


def outcomes(history: History, of: Of = ALL, *, days: int, measured: bool = False) -> list[Recorded]:
    """Return outcomes by subject, check and run; with their measurements and artefacts only where `measured`."""
    numbers = _beside(history.ask(_MEASUREMENTS, of, days=days, table=MEASUREMENTS) if measured else [])
    kept = _beside(history.ask(_ARTEFACTS, of, days=days, table=ARTEFACTS) if measured else [])
    return [_recorded(row, numbers, kept) for row in history.ask(_OUTCOMES, of, days=days)]


def judged(history: History, of: Of = ALL, *, days: int) -> Judged:
    """Return how much there is."""
    rows = history.ask(_JUDGED, of, days=days)
    return Judged(*rows[0]) if rows else Judged(0, 0, "", "")


def turns(history: History, of: Of = ALL, *, days: int) -> list[Turn]:
    """Return where a verdict is another than the one before, oldest first; a first pass is none."""
    return [Turn(*row) for row in history.ask(_TURNS, of, days=days)]


def _beside(rows: list[Row]) -> dict[Row, list[Row]]:
    """Return what belongs to each outcome: run, check and subject → rows."""
    found: dict[Row, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[:3]].append(row[3:])
    return found


def _recorded(row: Row, numbers: dict[Row, list[Row]], kept: dict[Row, list[Row]]) -> Recorded:
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
    return Recorded(
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
            tuple(Artefact(*one) for one in kept[key]) if key in kept else (),
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
