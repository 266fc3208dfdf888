"""How much a measurement moves by itself: median and spread over what was measured before, beside the newest value."""

from __future__ import annotations

from dataclasses import dataclass

from assay.harness.history.ask import ALL, History, Of
from assay.harness.history.places import MEASUREMENTS

MOST, LEAST = 20, 5
"""How many earlier values tell the noise, and how few tell nothing."""
FINEST = 0.01
"""Of what a number is: the least that counts as its spread, since one that never moved has none."""
_NOISE = """
WITH
  of_evidence AS (
    SELECT *, coalesce(nullif(evidence, ''), run) AS told_by FROM among($files, $nodes, $subjects, $checks, $fits)
    WHERE isfinite(value) QUALIFY row_number() OVER (PARTITION BY check_, subject, name, told_by ORDER BY run) = 1
  ),
  aged AS (
    SELECT *, row_number() OVER (PARTITION BY check_, subject, name ORDER BY run DESC) AS age FROM of_evidence
  )
SELECT check_, subject, any_value(node), name, any_value(unit), any_value(value) FILTER (age = 1),
  any_value(run_at) FILTER (age = 1), median(value) FILTER (age > 1), mad(value) FILTER (age > 1), count(*) - 1
FROM aged WHERE age <= $most + 1 GROUP BY check_, subject, name ORDER BY subject, check_, name
"""


@dataclass(frozen=True, slots=True)
class Noise:
    """A measurement's newest `value`, and what it was in the `count` documents before: median, and spread about it.

    The spread is the median distance from the median (MAD); both are None where there is nothing before.
    """

    check: str
    subject: str
    node: str
    name: str
    unit: str
    value: float
    at: str
    median: float | None
    mad: float | None
    count: int

    @property
    def times(self) -> float | None:
        """How many spreads the newest value is off; None where too little is known."""
        if self.median is None or self.mad is None or self.count < LEAST:
            return None
        return abs(self.value - self.median) / (max(self.mad, FINEST * abs(self.median)) or FINEST)


def noise(history: History, of: Of = ALL, *, days: int = 90, most: int = MOST) -> list[Noise]:
    """Return every measurement with its noise over `most` earlier documents; judging one again tells nothing new."""
    return [Noise(*row) for row in history.ask(_NOISE, of, days=days, table=MEASUREMENTS, most=most)]
