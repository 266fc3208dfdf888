"""Flaky checks: the rule, and its query of history.

A check is flaky on a subject when its verdict turned between pass and fail at least MIN_FLAKY_TURNS times in its last
WINDOW_RUNS verdicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from assay.ledger.history.queries import ALL_OUTCOMES, OutcomeHistory, OutcomeQuery
from assay.model.outcome import CheckVerdict

WINDOW_RUNS = 10
"""Number of verdicts that the rule looks at."""
MIN_FLAKY_TURNS = 3
"""For example pass, fail, pass, fail. A part that broke once and was repaired once has turned twice."""


def count_flaky_turns(verdicts: Sequence[str]) -> int:
    """Return how often the verdicts, in order, turned; 0 where that is too seldom to be flaky.

    `verdicts` are the last WINDOW_RUNS of `pass` and `fail`: errors and skips say nothing of the part.
    """
    turns = sum(earlier != later for earlier, later in pairwise(verdicts))
    return turns if turns >= MIN_FLAKY_TURNS else 0


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
