"""How much a measurement moves by itself: median and spread over earlier runs, and what moved more than that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from assay.harness.history.ask import ALL, History, Of
from assay.harness.history.places import MEASUREMENTS

RUNS, LEAST, TIMES = 20, 5, 5.0
FINEST = 0.01
"""Of what a number is: the least that counts as its spread, since one that never moved has none."""
AT_ONCE = 500
"""So many nodes are looked at together, so that memory does not grow with the fleet."""
_NOISE = """
WITH aged AS (
  SELECT *, row_number() OVER (PARTITION BY check_, subject, name ORDER BY run DESC) AS age
  FROM among($files, $nodes, $subjects, $checks, $fits) WHERE run < $before AND isfinite(value)
)
SELECT check_, subject, any_value(node), name, any_value(unit), median(value), mad(value), count(*)
FROM aged WHERE age <= $most GROUP BY check_, subject, name HAVING count(*) >= $least ORDER BY subject, check_, name
"""
_VALUES = """
SELECT check_, subject, name, value FROM among($files, $nodes, $subjects, $checks, $fits) WHERE run = $run
"""
_NODES = """
SELECT DISTINCT node FROM among($files, $nodes, $subjects, $checks, $fits) WHERE run = $run ORDER BY node
"""
NEWEST = "~"
"""Comes after every run."""


@dataclass(frozen=True, slots=True)
class Noise:
    """What a measurement was over its last `count` runs: its median, and the median distance from that (MAD)."""

    check: str
    subject: str
    node: str
    name: str
    unit: str
    median: float
    mad: float
    count: int

    def times(self, value: float) -> float:
        """Return how many spreads `value` is away from the median."""
        return abs(value - self.median) / (max(self.mad, FINEST * abs(self.median)) or FINEST)


@dataclass(frozen=True, slots=True)
class Moved:
    """A measurement that is further from what it was than it moves by itself: by `times` its spread."""

    value: float
    times: float
    noise: Noise


def noise(
    history: History, of: Of = ALL, *, before: str = NEWEST, days: int = 90, most: int = RUNS, least: int = LEAST
) -> list[Noise]:
    """Return the noise of measurements over the last `most` runs before the run `before`; `least` tell enough."""
    rows = history.ask(_NOISE, of, days=days, table=MEASUREMENTS, before=before, most=most, least=least)
    return [Noise(*row) for row in rows]


def moved(
    history: History, run: str, of: Of = ALL, *, days: int = 90, most: int = RUNS, times: float = TIMES
) -> Iterator[Moved]:
    """Yield the measurements of the run `run` that moved more than `times` their noise in the runs before it."""
    nodes = iter([node for (node,) in history.ask(_NODES, of, days=days, table=MEASUREMENTS, run=run)])
    while some := list(islice(nodes, AT_ONCE)):
        among = Of(some, of.subjects, of.checks, of.fits)
        rows = history.ask(_VALUES, among, days=days, table=MEASUREMENTS, run=run)
        values = {(check, subject, name): value for check, subject, name, value in rows}
        for one in noise(history, among, before=run, days=days, most=most):
            value = values.get((one.check, one.subject, one.name))
            if value is not None and one.times(value) > times:
                yield Moved(value, one.times(value), one)
