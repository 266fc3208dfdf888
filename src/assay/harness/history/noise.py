"""How much a measurement moves by itself: median and noise of what was measured before, beside the newest value."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from assay.harness.history import places
from assay.harness.history.ask import ALL, History, Of, Row
from assay.harness.steadiness import RUNS, Floors, Series, floors, is_far, noise_of, sample

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
class Noise:
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
        return self.median is not None and self.noise is not None and is_far(self.value, self.median, self.noise)


def noise(history: History, of: Of = ALL, *, days: int = 90) -> list[Noise]:
    """Return every measurement with its noise, as `harness.steadiness` has it; judging again tells nothing new."""
    rows = _values(history, of, days, RUNS + 1)
    floor = _floors(history, rows, days) if rows else {}
    return [_noise(row, floor) for row in rows]


def _noise(row: Row, floor: Floors) -> Noise:
    check, subject, _, name, node, unit, _, at, (value, *before) = row
    middle = median(before) if before else None
    return Noise(
        check, subject, node, name, unit, value, at, len(before), middle, noise_of(before, floor.get((check, name)))
    )


def _floors(history: History, rows: list[Row], days: int) -> Floors:
    """Return what is usual in the runs before the newest of these rows, by some of its nodes."""
    run, checks = max(row[6] for row in rows), {row[0] for row in rows}
    before = [row[0] for row in history.ask(_BEFORE, days=days, table=places.RUNS, run=run, most=RUNS)]
    if not before:
        return {}
    nodes = sample(row[0] for row in history.ask(_NODES, days=days, table=places.MEASUREMENTS, run=run))
    rows = _values(history, Of(nodes=nodes, checks=checks), days, RUNS, before[-1], before[0])
    return floors({Series(*row[:4]): row[-1] for row in rows})


def _values(history: History, of: Of, days: int, most: int, since: str = "", until: str = "~") -> list[Row]:
    """Return each series, what is known of it, and its newest values in the runs from `since` to `until`."""
    return history.ask(_VALUES, of, days=days, table=places.MEASUREMENTS, most=most, since=since, until=until)
