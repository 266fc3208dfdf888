"""Which checks change their mind: how often a verdict on a subject turned, measured and never hidden by reruns."""

from __future__ import annotations

from dataclasses import dataclass

from assay.harness.history.ask import ALL, History, Of
from assay.harness.steadiness import FEWEST_TURNS, RUNS, flips
from assay.model.outcome import Verdict

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


def flapping(history: History, of: Of = ALL, *, days: int = 90) -> list[Flap]:
    """Return what flaps by its last judgements, as `harness.steadiness` has it, most often first."""
    found = [
        Flap(check, subject, node, turned, len(verdicts), verdicts[0], first, last)
        for check, subject, node, verdicts, first, last in history.ask(
            _JUDGED, of, days=days, most=RUNS, least=FEWEST_TURNS
        )
        if (turned := flips(verdicts))
    ]
    return sorted(found, key=lambda one: (-one.times, one.subject, one.check))
