"""How much a measurement moves by itself: median and noise of what was measured before, beside the newest value.

Which checks change their mind: how often a verdict on a subject turned, measured and never hidden by reruns.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from assay.model.outcome import CheckVerdict
from assay.results.flaky_and_noise_rules import (
    MIN_FLAKY_TURNS,
    WINDOW_RUNS,
    MeasurementSeries,
    NoiseFloors,
    count_flaky_turns,
    estimate_noise,
    estimate_noise_floors,
    exceeds_noise,
    sample_nodes,
)
from assay.results.history import parquet_files
from assay.results.history.queries import ALL_OUTCOMES, HistoryRow, OutcomeHistory, OutcomeQuery

_JUDGED = """
WITH
  failed AS MATERIALIZED (
    SELECT DISTINCT check_, subject FROM among($files, $nodes, $subjects, $checks, $fits) WHERE verdict = 'fail'
  ),
  aged AS (
    SELECT check_, subject, node, run, run_at, verdict,
      row_number() OVER (PARTITION BY check_, subject ORDER BY run DESC) AS age
    FROM among($files, $nodes, $subjects, $checks, $fits) SEMI JOIN failed USING (check_, subject)
    WHERE verdict IN ('pass', 'fail')
  )
SELECT check_, subject, any_value(node), list(verdict ORDER BY age), min(run_at), max(run_at)
FROM aged WHERE age <= $most GROUP BY check_, subject
HAVING 2 * least(count_if(verdict = 'fail'), count_if(verdict = 'pass')) >= $least
"""
"""The last judgements of what may flap: a verdict turns at most twice as often as it is the rarer one."""


@dataclass(frozen=True, slots=True)
class FlakyCheck:
    """A check whose verdict on a subject turned so many `times` in so many judgements; `verdict` is the newest.

    Only pass and fail are judgements: an error or a skip tells nothing. `first` and `last` are when (ISO 8601).
    """

    check: str
    subject: str
    node: str
    times: int
    judged: int
    verdict: CheckVerdict
    first: str
    last: str


def query_flaky_checks(history: OutcomeHistory, of: OutcomeQuery = ALL_OUTCOMES, *, days: int = 90) -> list[FlakyCheck]:
    """Return what flaps by its last judgements, as `harness.steadiness` has it, most often first."""
    found = [
        FlakyCheck(check, subject, node, turned, len(verdicts), verdicts[0], first, last)
        for check, subject, node, verdicts, first, last in history.ask(
            _JUDGED, of, days=days, most=WINDOW_RUNS, least=MIN_FLAKY_TURNS
        )
        if (turned := count_flaky_turns(verdicts))
    ]
    return sorted(found, key=lambda one: (-one.times, one.subject, one.check))


_VALUES = """
WITH
  of_evidence AS (
    SELECT *, coalesce(nullif(evidence, ''), run) AS told_by FROM among($files, $nodes, $subjects, $checks, $fits)
    WHERE isfinite(value) AND run BETWEEN $since AND $until
    QUALIFY row_number() OVER (PARTITION BY check_, subject, n, name, told_by ORDER BY run DESC) = 1
  ),
  aged AS (
    SELECT *, row_number() OVER (PARTITION BY check_, subject, n, name ORDER BY run DESC) AS age FROM of_evidence
  )
SELECT check_, subject, n, name, any_value(node), arg_max(unit, run), max(run), max(run_at), list(value ORDER BY age)
FROM aged WHERE age <= $most GROUP BY check_, subject, n, name ORDER BY subject, check_, n
"""
_BEFORE = "SELECT run FROM read_parquet($files) WHERE run < $run ORDER BY run DESC LIMIT $most"
_NODES = "SELECT DISTINCT node FROM among($files, $nodes, $subjects, $checks, $fits) WHERE run = $run"


@dataclass(frozen=True, slots=True)
class MeasurementNoise:
    """A measurement's newest `value`, and median and noise of the `count` documents before; None where not known."""

    check: str
    subject: str
    node: str
    name: str
    unit: str
    value: float
    at: str
    count: int
    median: float | None
    noise: float | None

    @property
    def times(self) -> float | None:
        """How many times its noise the newest value is off; None where that is not known."""
        return None if self.median is None or self.noise is None else abs(self.value - self.median) / self.noise

    @property
    def is_far(self) -> bool:
        """Whether the newest value is further off than the measurement moves by itself."""
        return self.median is not None and self.noise is not None and exceeds_noise(self.value, self.median, self.noise)


def query_noise(history: OutcomeHistory, of: OutcomeQuery = ALL_OUTCOMES, *, days: int = 90) -> list[MeasurementNoise]:
    """Return every measurement with its noise, as `harness.steadiness` has it; judging again tells nothing new."""
    rows = _query_values(history, of, days, WINDOW_RUNS + 1)
    floor = _query_floors(history, rows, days) if rows else {}
    return [_read_noise(row, floor) for row in rows]


def _read_noise(row: HistoryRow, floor: NoiseFloors) -> MeasurementNoise:
    check, subject, _, name, node, unit, _, at, (value, *before) = row
    middle = median(before) if before else None
    return MeasurementNoise(
        check,
        subject,
        node,
        name,
        unit,
        value,
        at,
        len(before),
        middle,
        estimate_noise(before, floor.get((check, name))),
    )


def _query_floors(history: OutcomeHistory, rows: list[HistoryRow], days: int) -> NoiseFloors:
    """Return what is usual in the runs before the newest of these rows, by some of its nodes."""
    run, checks = max(row[6] for row in rows), {row[0] for row in rows}
    before = [
        row[0] for row in history.ask(_BEFORE, days=days, table=parquet_files.RUNS_TABLE, run=run, most=WINDOW_RUNS)
    ]
    if not before:
        return {}
    nodes = sample_nodes(
        row[0] for row in history.ask(_NODES, days=days, table=parquet_files.MEASUREMENTS_TABLE, run=run)
    )
    rows = _query_values(history, OutcomeQuery(nodes=nodes, checks=checks), days, WINDOW_RUNS, before[-1], before[0])
    return estimate_noise_floors({MeasurementSeries(*row[:4]): row[-1] for row in rows})


def _query_values(
    history: OutcomeHistory, of: OutcomeQuery, days: int, most: int, since: str = "", until: str = "~"
) -> list[HistoryRow]:
    """Return each series, what is known of it, and its newest values in the runs from `since` to `until`."""
    return history.ask(
        _VALUES, of, days=days, table=parquet_files.MEASUREMENTS_TABLE, most=most, since=since, until=until
    )
