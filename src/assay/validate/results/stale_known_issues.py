"""Finds known issues that excuse nothing in a run: all outcomes that they match pass, or they match none."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

from assay.ledger.runs.reader import StoredRun
from assay.model.fleet import Fleet
from assay.model.outcome import VERDICTS
from assay.model.specs.known_issues import ExcuseCandidate, KnownIssue

REMOVE_ENTRY_FIX = "if the issue is resolved, remove the entry from specs/known-issues.yaml"


@dataclass(frozen=True, slots=True)
class StaleKnownIssue:
    """A known issue that has not expired, and the number of outcomes that it matches, which are all passes."""

    issue: KnownIssue
    passes: int

    @property
    def description(self) -> str:
        """One line for people."""
        matched = f"all {self.passes} outcomes" if self.passes > 1 else "the only outcome"
        what = f"{matched} that it matches passed" if self.passes else "it matches no outcome of the run"
        return f"{self.issue.issue} excuses nothing: {what}; {REMOVE_ENTRY_FIX}"


def find_stale_issues(stored: StoredRun, fleet: Fleet) -> list[StaleKnownIssue]:
    """Return the known issues, of those that were valid at the time of the run, that excuse nothing in it.

    An issue that matches an error or a skip may still exist. An issue that matches no outcome is stale only if the run
    was of the whole fleet.
    """
    now = datetime.fromisoformat(stored.run.at)
    valid = list(dict.fromkeys(issue for issue in fleet.known_issues if now < issue.expires_at))
    if not valid:
        return []
    is_whole_fleet = _is_of_whole_fleet(stored, fleet)
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


def _is_of_whole_fleet(stored: StoredRun, fleet: Fleet) -> bool:
    """Return whether the run was of every node and phase, with nothing left out."""
    left_out = stored.connection.execute("SELECT 1 FROM left_out LIMIT 1").fetchone()
    return left_out is None and not stored.run.phases and set(stored.run.nodes) >= fleet.nodes.keys()
