"""Finds passes of a run that say nothing today: their evidence is older than the policy allows.

The run's file holds the greatest age for each check. Only passes count: a failure on old evidence stays a failure.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from assay.ledger.runs.reader import FRESH_HOURS_KEY, StoredRun
from assay.ledger.runs.schema import deciding_condition
from assay.model.outcome import VERDICTS
from assay.model.text.text_lists import format_count

_STALE = """
SELECT c.name, o.document, count(*) FROM outcome o JOIN check_ c ON c.id = o.check_{where} GROUP BY 1, 2
"""
_CONDITIONS = (
    f"o.verdict = {VERDICTS.index('pass')}",
    deciding_condition("o"),
    "o.document IN (SELECT value FROM json_each(?))",
)


@dataclass(frozen=True, slots=True)
class StaleEvidence:
    """How many passes are too old, and the oldest of them: its check, its age and its greatest age in hours."""

    passes: int
    check: str
    age_hours: float
    max_hours: float

    @property
    def description(self) -> str:
        """The sentence for people."""
        check = self.check.rpartition("::")[2]
        oldest = f"that of {check} is {_format_age(self.age_hours)} old, and may be {_format_age(self.max_hours)}"
        return f"{format_count(self.passes, 'outcome')} passed on old evidence: {oldest}"


def read_fresh_hours(stored: StoredRun) -> Mapping[str, float]:
    """Return the greatest age in hours of the evidence of a pass, by check; none for a run of an older assay."""
    limits: Mapping[str, float] = json.loads(stored.about.get(FRESH_HOURS_KEY, "{}"))
    return limits


def find_stale_evidence(
    stored: StoredRun, now: datetime, where: str = "", values: Sequence[str] = ()
) -> StaleEvidence | None:
    """Return the passes of a run that are too old at `now`, None where there are none, or no limits are known.

    `where` is a WHERE clause over rows of `outcome` called `o`, with its values; "" selects all outcomes.
    """
    limits = read_fresh_hours(stored)
    ages = _find_old_documents(stored.connection, now, min(limits.values(), default=float("inf")))
    if not ages:
        return None
    clause = f"{where} AND {' AND '.join(_CONDITIONS)}" if where else f" WHERE {' AND '.join(_CONDITIONS)}"
    rows = stored.connection.execute(_STALE.format(where=clause), [*values, json.dumps(list(ages))])
    stale = [(ages[document], limits[check], check, count) for check, document, count in rows if check in limits]
    stale = [row for row in stale if row[0] > row[1]]
    if not stale:
        return None
    age, limit, check, _ = max(stale)
    return StaleEvidence(sum(count for *_, count in stale), check, age, limit)


def _find_old_documents(connection: sqlite3.Connection, now: datetime, hours: float) -> dict[int, float]:
    """Return the age in hours of each document that is older than this, by number."""
    rows = connection.execute("SELECT id, at FROM document WHERE at != ''")
    ages = {number: (now - datetime.fromisoformat(at)).total_seconds() / 3600 for number, at in rows}
    return {number: age for number, age in ages.items() if age > hours}


def _format_age(hours: float) -> str:
    return f"{hours:g} h" if hours < 1 else f"{hours:.0f} h" if hours <= 96 else f"{hours / 24:.0f} days"
