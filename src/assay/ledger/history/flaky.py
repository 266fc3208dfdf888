"""Flaky checks and the noise of measurements: the rules, wherever values come from, and their queries of history.

A check is flaky on a subject when its verdict turned between pass and fail at least MIN_FLAKY_TURNS times in its last
WINDOW_RUNS verdicts. The noise of a measurement is 1.4826 × MAD over up to WINDOW_RUNS earlier documents, the standard
deviation of normal values (Rousseeuw and Croux, 1993). It is at least the median noise of that measurement on other
subjects, since few values often lie too close together. A shift counts beyond NOISE_FACTOR × noise. With fewer than
MIN_VALUES values, or where no subject's values vary, noise is unknown and no shift is reported.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from assay.ledger.history import parquet_files
from assay.ledger.history.queries import ALL_OUTCOMES, HistoryRow, OutcomeHistory, OutcomeQuery
from assay.model.facts import fact
from assay.model.outcome import CheckVerdict

WINDOW_RUNS = 10
"""Number of verdicts, or of earlier documents, that the rules look at."""
MIN_FLAKY_TURNS = 3
"""For example pass, fail, pass, fail. A part that broke once and was repaired once has turned twice."""
MIN_VALUES, NOISE_FACTOR = 5, 5.0
MAX_SAMPLE_NODES = 60
"""Nodes from which the noise floor is estimated; the median of so many is accurate to about a tenth."""
MAD_TO_DEVIATION = 1.4826
SMALL_SAMPLE_FACTORS = {5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}
"""Correction of the MAD for few values (Croux and Rousseeuw, 1992); for more values it is n / (n - 0.8)."""


class MeasurementSeries(NamedTuple):
    """One measurement of a check on a subject; `n` is its position in the outcome."""

    check: str
    subject: str
    n: int
    name: str


NoiseFloors = Mapping[tuple[str, str], float]
"""The least noise of a measurement, by check and name."""


def count_flaky_turns(verdicts: Sequence[str]) -> int:
    """Return how often the verdicts, in order, turned; 0 where that is too seldom to be flaky.

    `verdicts` are the last WINDOW_RUNS of `pass` and `fail`: errors and skips say nothing of the part.
    """
    turns = sum(earlier != later for earlier, later in pairwise(verdicts))
    return turns if turns >= MIN_FLAKY_TURNS else 0


def estimate_noise(values: Sequence[float], floor: float | None) -> float | None:
    """Return the noise of a series from its last WINDOW_RUNS values and the noise floor; None where it is unknown."""
    return max(robust_deviation(values), floor) if len(values) >= MIN_VALUES and floor else None


def exceeds_noise(value: float, other: float, noise: float) -> bool:
    """Return whether two values are further apart than noise explains."""
    return abs(value - other) > NOISE_FACTOR * noise


def robust_deviation(values: Sequence[float]) -> float:
    """Return the robust standard deviation of values, at least MIN_VALUES of them."""
    middle, count = median(values), len(values)
    correction = SMALL_SAMPLE_FACTORS.get(count, count / (count - 0.8))
    return MAD_TO_DEVIATION * correction * median(abs(value - middle) for value in values)


def estimate_noise_floors(known: Mapping[MeasurementSeries, Sequence[float]]) -> NoiseFloors:
    """Return the median deviation over all series of each check and measurement, where it is above 0."""
    spreads: dict[tuple[str, str], list[float]] = defaultdict(list)
    for series, values in known.items():
        if len(values) >= MIN_VALUES:
            spreads[series.check, series.name].append(robust_deviation(values))
    return {key: floor for key, of_key in spreads.items() if (floor := median(of_key)) > 0}


def sample_nodes(nodes: Iterable[str]) -> list[str]:
    """Return a sample of the nodes, spread evenly. "" stands for measurements of racks and fabrics."""
    every = sorted({*nodes, ""})
    return every[:: max(1, len(every) // MAX_SAMPLE_NODES)]


_JUDGED = """
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


@dataclass(frozen=True, slots=True)
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
    rows = history.fetch(_JUDGED, query, days=days, most=WINDOW_RUNS, least=MIN_FLAKY_TURNS)
    flaky = [
        FlakyCheck(check, subject, node, turns, len(verdicts), verdicts[0], first, last)
        for check, subject, node, verdicts, first, last in rows
        if (turns := count_flaky_turns(verdicts))
    ]
    return sorted(flaky, key=lambda check: (-check.times, check.subject, check.check))


_VALUES = """
WITH
  of_evidence AS (
    SELECT *, coalesce(nullif(evidence, ''), run) AS told_by FROM among($files, $nodes, $subjects, $checks, $pattern)
    WHERE isfinite(value) AND run BETWEEN $since AND $until
    QUALIFY row_number() OVER (PARTITION BY check_, subject, n, name, told_by ORDER BY run DESC) = 1
  ),
  aged AS (
    SELECT *, row_number() OVER (PARTITION BY check_, subject, n, name ORDER BY run DESC) AS age FROM of_evidence
  )
SELECT check_, subject, n, name, any_value(node), arg_max(unit, run), max(run), max(run_at), list(value ORDER BY age)
FROM aged WHERE age <= $most GROUP BY check_, subject, n, name ORDER BY subject, check_, n
"""
_EARLIER_RUNS = "SELECT run FROM read_parquet($files) WHERE run < $run ORDER BY run DESC LIMIT $most"
_NODES = "SELECT DISTINCT node FROM among($files, $nodes, $subjects, $checks, $pattern) WHERE run = $run"


@fact
class MeasurementNoise:
    """The newest value of a measurement, and what is usual for it."""

    check: str
    """The id of the check that measured it."""
    subject: str
    """What was measured: a node or a part of it."""
    node: str
    """The node of the subject."""
    name: str
    """The name of the measurement."""
    unit: str
    """The unit of value, median and noise; "" for a count or a ratio."""
    value: float
    """The newest value."""
    at: str
    """When it was measured: ISO 8601."""
    count: int
    """How many earlier documents `median` and `noise` are from."""
    median: float | None
    """The median of the earlier values; null if there is none."""
    noise: float | None
    """How much the earlier values vary; null if that is not known."""
    times: float | None
    """How far the newest value is from the median, in multiples of the noise; null if that is not known."""

    @property
    def is_far(self) -> bool:
        """Whether the newest value is further from the median than noise explains."""
        return self.median is not None and self.noise is not None and exceeds_noise(self.value, self.median, self.noise)


def query_noise(
    history: OutcomeHistory, query: OutcomeQuery = ALL_OUTCOMES, *, days: int = 90
) -> list[MeasurementNoise]:
    """Return every measurement with its noise. One document counts once, however often it was judged."""
    rows = _query_values(history, query, days, WINDOW_RUNS + 1)
    floors = _query_floors(history, rows, days) if rows else {}
    return [_make_noise(row, floors) for row in rows]


def _make_noise(row: HistoryRow, floors: NoiseFloors) -> MeasurementNoise:
    check, subject, _, name, node, unit, _, at, (value, *earlier) = row
    middle = median(earlier) if earlier else None
    noise = estimate_noise(earlier, floors.get((check, name)))
    times = None if middle is None or noise is None else abs(value - middle) / noise
    return MeasurementNoise(check, subject, node, name, unit, value, at, len(earlier), middle, noise, times)


def _query_floors(history: OutcomeHistory, rows: list[HistoryRow], days: int) -> NoiseFloors:
    """Return the usual noise of these checks in the runs before the newest one, from a sample of its nodes."""
    run, checks = max(row[6] for row in rows), {row[0] for row in rows}
    runs = history.fetch(_EARLIER_RUNS, days=days, table=parquet_files.RUNS_TABLE, run=run, most=WINDOW_RUNS)
    if not runs:
        return {}
    (newest, *_), (oldest, *_) = runs[0], runs[-1]
    measured = history.fetch(_NODES, days=days, table=parquet_files.MEASUREMENTS_TABLE, run=run)
    nodes = sample_nodes(row[0] for row in measured)
    rows = _query_values(history, OutcomeQuery(nodes=nodes, checks=checks), days, WINDOW_RUNS, oldest, newest)
    return estimate_noise_floors({MeasurementSeries(*row[:4]): row[-1] for row in rows})


def _query_values(
    history: OutcomeHistory, query: OutcomeQuery, days: int, most: int, since: str = "", until: str = "~"
) -> list[HistoryRow]:
    """Return each series with its newest `most` values in the runs from `since` to `until`."""
    table = parquet_files.MEASUREMENTS_TABLE
    return history.fetch(_VALUES, query, days=days, table=table, most=most, since=since, until=until)
