"""Which checks change their mind: how often a verdict on a subject turned, measured and never hidden by reruns."""

from __future__ import annotations

from dataclasses import dataclass

from assay.harness.history.ask import ALL, History, Of
from assay.model.outcome import Verdict

RUNS, LEAST = 20, 3
"""How many judgements are looked at, and how many turns are flapping: failing once and recovering are two."""
_FLAPPING = """
WITH
  failed AS MATERIALIZED (
    SELECT DISTINCT check_, subject FROM among($files, $nodes, $subjects, $checks, $fits) WHERE verdict = 'fail'
  ),
  told AS (
    SELECT check_, subject, node, run, run_at, verdict
    FROM among($files, $nodes, $subjects, $checks, $fits) SEMI JOIN failed USING (check_, subject)
    WHERE verdict IN ('pass', 'fail')
  ),
  aged AS (
    SELECT *, verdict <> lag(verdict) OVER (PARTITION BY check_, subject ORDER BY run) AS turned,
      row_number() OVER (PARTITION BY check_, subject ORDER BY run DESC) AS age
    FROM told
  )
SELECT check_, subject, any_value(node), count_if(turned AND age < $most) AS times, count(*), arg_max(verdict, run),
  min(run_at), max(run_at)
FROM aged WHERE age <= $most GROUP BY check_, subject HAVING times >= $least ORDER BY times DESC, subject, check_
"""


@dataclass(frozen=True, slots=True)
class Flap:
    """A check whose verdict on a subject turned so many `times` in so many judgements; `verdict` is the newest.

    Only pass and fail are judgements: an error or a skip tells nothing. `first` and `last` are when (ISO 8601).
    """

    check: str
    subject: str
    node: str
    times: int
    judged: int
    verdict: Verdict
    first: str
    last: str


def flapping(history: History, of: Of = ALL, *, days: int = 90, most: int = RUNS, least: int = LEAST) -> list[Flap]:
    """Return what turned at least `least` times in its last `most` judgements, most often first."""
    return [Flap(*row) for row in history.ask(_FLAPPING, of, days=days, most=most, least=least)]
