"""What no longer counts in a run: passes on evidence older than the policy allows, and issues that excuse nothing.

The run's file holds the greatest age for each check. Only passes count: a failure on old evidence stays a failure. A
known issue excuses nothing where all outcomes that it matches pass, or where it matches none.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase

from assay.ledger.runs.reader import FRESH_HOURS_KEY, StoredRun
from assay.ledger.runs.schema import deciding_condition
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.outcome import VERDICTS
from assay.model.specs.known_issues import ExcuseCandidate, KnownIssue
from assay.model.text.lists import format_count

_STALE = """
SELECT c.name, o.document, count(*) FROM outcome o JOIN check_ c ON c.id = o.check_{where} GROUP BY 1, 2
"""
_CONDITIONS = (
    f"o.verdict = {VERDICTS.index('pass')}",
    deciding_condition("o"),
    "o.document IN (SELECT value FROM json_each(?))",
)
REMOVE_ENTRY_FIX = "if the issue is resolved, remove the entry from specs/known-issues.yaml"


@frozen
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
    shortest = min(limits.values(), default=float("inf"))
    ages: dict[int, float] = {}
    for document, at in stored.connection.execute("SELECT id, at FROM document WHERE at != ''"):
        age = (now - datetime.fromisoformat(at)).total_seconds() / 3600
        if age > shortest:
            ages[document] = age
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


def _format_age(hours: float) -> str:
    return f"{hours:g} h" if hours < 1 else f"{hours:.0f} h" if hours <= 96 else f"{hours / 24:.0f} days"


@frozen
class StaleKnownIssue:
    """A known issue that has not expired, and the number of outcomes that it matches, which are all passes."""

    issue: KnownIssue
    passes: int

    @property
    def description(self) -> str:
        """One line for people."""
        matched = f"all {self.passes} outcomes" if self.passes > 1 else "the only outcome"
        finding = f"{matched} that it matches passed" if self.passes else "it matches no outcome of the run"
        return f"{self.issue.issue} excuses nothing: {finding}; {REMOVE_ENTRY_FIX}"


def find_stale_issues(stored: StoredRun, fleet: Fleet) -> list[StaleKnownIssue]:
    """Return the known issues, of those that were valid at the time of the run, that excuse nothing in it.

    An issue that matches an error or a skip may still exist. An issue that matches no outcome is stale only if the run
    was of the whole fleet.
    """
    now = datetime.fromisoformat(stored.run.at)
    valid = list(dict.fromkeys(issue for issue in fleet.known_issues if now < issue.expires_at))
    if not valid:
        return []
    left_out = stored.connection.execute("SELECT 1 FROM left_out LIMIT 1").fetchone()
    is_whole_fleet = not left_out and not stored.run.phases and set(stored.run.nodes) >= fleet.nodes.keys()
    return [
        StaleKnownIssue(issue, counts["pass"])
        for issue, counts in _count_matches(stored, fleet, valid).items()
        if counts.total() == counts["pass"] and (counts or is_whole_fleet)
    ]


def _count_matches(stored: StoredRun, fleet: Fleet, issues: list[KnownIssue]) -> dict[KnownIssue, Counter[str]]:
    """Return the number of outcomes that each issue matches, by verdict. Outcomes are read once for all issues."""
    counts = {issue: Counter[str]() for issue in issues}
    checks: dict[int, tuple[str, list[KnownIssue]]] = {}
    for key, name in stored.connection.execute("SELECT id, name FROM check_"):
        if of_check := [issue for issue in issues if fnmatchcase(name, issue.match.check)]:
            checks[key] = (name, of_check)
    query = """SELECT o.check_, o.verdict, o.subject, s.name, s.node FROM outcome o JOIN subject s ON s.id = o.subject
      WHERE o.check_ IN (SELECT value FROM json_each(?))"""
    matches: dict[tuple[KnownIssue, int], bool] = {}
    for key, verdict, subject, name, node in stored.connection.execute(query, (json.dumps(list(checks)),)):
        check, of_check = checks[key]
        for issue in of_check:
            if (issue, subject) not in matches:
                candidate = ExcuseCandidate.from_node(check, name, fleet.nodes.get(node))
                matches[issue, subject] = issue.match.matches(candidate)
            if matches[issue, subject]:
                counts[issue][VERDICTS[verdict]] += 1
    return counts
