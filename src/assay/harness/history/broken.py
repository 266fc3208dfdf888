"""What broke of late: failing by its newest outcome, and not failing by the newest one before."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from assay.harness.history.ask import ALL, History, Of
from assay.model.outcome import Verdict

_BROKEN = """
WITH
  suspect AS MATERIALIZED (
    SELECT DISTINCT check_, subject FROM among($files, $nodes, $subjects, $checks, $fits)
    WHERE run >= $since AND verdict IN ('fail', 'error') AND NOT observed
  ),
  told AS (
    SELECT check_, subject, node, pool, fault, run, run_at, verdict, reason, known
    FROM among($files, $nodes, $subjects, $checks, $fits) SEMI JOIN suspect USING (check_, subject)
  )
SELECT check_, subject, any_value(node), any_value(pool), any_value(fault), arg_max(verdict, run) AS newest,
  arg_max(reason, run), arg_max(known, run), arg_min(run, run) FILTER (ill AND run >= $since),
  arg_min(run_at, run) FILTER (ill AND run >= $since), coalesce(arg_max(verdict, run) FILTER (run < $since), '') AS was
FROM (SELECT *, verdict IN ('fail', 'error') AS ill FROM told) GROUP BY check_, subject
HAVING newest IN ('fail', 'error') AND was <> newest ORDER BY subject, check_
"""


@dataclass(frozen=True, slots=True)
class Broken:
    """A check that fails on a subject, or can no longer be judged, and did not before; `was` is "" if it is new.

    `run` and `at` are the first of the runs since then in which it did not pass.
    """

    check: str
    subject: str
    node: str
    pool: str
    fault: str
    verdict: Verdict
    reason: str
    known: str
    run: str
    at: str
    was: str


def broken(history: History, since: datetime, of: Of = ALL, *, days: int = 30) -> list[Broken]:
    """Return what broke since then, by what the `days` before tell; what decides nothing is left out."""
    back = days + (history.now - since) // timedelta(days=1) + 1
    return [Broken(*row) for row in history.ask(_BROKEN, of, days=back, since=f"{since.astimezone(UTC):%Y%m%dT%H%M%S}")]
