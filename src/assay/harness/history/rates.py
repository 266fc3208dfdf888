"""How well each pool did, day by day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from assay.harness.history.ask import ALL, History, Of

_RATES = """
SELECT day::DATE, pool, count(DISTINCT run), count_if(verdict = 'pass'), count_if(verdict = 'fail' AND known = ''),
  count_if(verdict = 'fail' AND known <> ''), count_if(verdict = 'error'), count_if(verdict = 'skip')
FROM among($files, $nodes, $subjects, $checks, $fits) WHERE NOT observed GROUP BY ALL ORDER BY ALL
"""


@dataclass(frozen=True, slots=True)
class Rate:
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


def rates(history: History, of: Of = ALL, *, days: int = 30) -> list[Rate]:
    """Return the pools' outcomes by day, oldest first."""
    return [Rate(*row) for row in history.ask(_RATES, of, days=days)]
