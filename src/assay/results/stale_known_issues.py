"""Known issues that a run no longer bears out: what they excuse passes everywhere, or is not there at all."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

from assay.model.fleet import Fleet
from assay.model.specs.known_issues import ExcuseCandidate, KnownIssue
from assay.results.store.reader import StoredRun
from assay.results.store.schema import VERDICTS

REMOVE_ENTRY_FIX = "take the entry out of specs/known-issues.yaml if it is mended"


@dataclass(frozen=True, slots=True)
class StaleKnownIssue:
    """A known issue that stands, and how many outcomes of the run it fits, all of them passes; 0 where it fits none."""

    issue: KnownIssue
    passes: int

    @property
    def description(self) -> str:
        """One line for people."""
        what = f"all {self.passes} that it fits passed" if self.passes > 1 else "the one that it fits passed"
        return f"{self.issue.issue} excuses nothing: {what if self.passes else 'nothing in the run fits it'}; {REMOVE_ENTRY_FIX}"


def find_stale_issues(stored: StoredRun, fleet: Fleet) -> list[StaleKnownIssue]:
    """Return the known issues, of those that stood when the run was, of which it shows nothing any more.

    One that fits something which could not be judged, or was skipped, may still be there. Of one that fits nothing
    only a run of the whole fleet can tell.
    """
    now = datetime.fromisoformat(stored.run.at)
    standing = list(dict.fromkeys(issue for issue in fleet.known_issues if now < issue.expires_at))
    if not standing:
        return []
    found, whole = _counted(stored, fleet, standing), _is_whole(stored, fleet)
    return [
        StaleKnownIssue(issue, counts["pass"])
        for issue, counts in found.items()
        if counts.total() == counts["pass"] and (counts or whole)
    ]


def _counted(stored: StoredRun, fleet: Fleet, issues: list[KnownIssue]) -> dict[KnownIssue, Counter[str]]:
    """Return how many outcomes of each verdict each issue fits. The outcomes of their checks are read once."""
    found = {issue: Counter[str]() for issue in issues}
    checks: dict[int, tuple[str, list[KnownIssue]]] = {}
    for ident, name in stored.connection.execute("SELECT id, name FROM check_"):
        if about := [issue for issue in issues if fnmatchcase(name, issue.match.check)]:
            checks[ident] = (name, about)
    fitting: dict[tuple[KnownIssue, int], bool] = {}
    for check, verdict, subject, name, node in _rows(stored, list(checks)):
        called, about = checks[check]
        for issue in about:
            if (issue, subject) not in fitting:
                fitting[issue, subject] = issue.match.matches(
                    ExcuseCandidate.from_node(called, name, fleet.nodes.get(node))
                )
            if fitting[issue, subject]:
                found[issue][VERDICTS[verdict]] += 1
    return found


def _rows(stored: StoredRun, checks: list[int]) -> Iterator[tuple[int, int, int, str, str]]:
    query = """SELECT o.check_, o.verdict, o.subject, s.name, s.node FROM outcome o JOIN subject s ON s.id = o.subject
      WHERE o.check_ IN (SELECT value FROM json_each(?))"""
    yield from stored.connection.execute(query, (json.dumps(checks),))


def _is_whole(stored: StoredRun, fleet: Fleet) -> bool:
    """Whether the run was of every node and phase, and nothing was left out of it."""
    left_out = stored.connection.execute("SELECT 1 FROM left_out LIMIT 1").fetchone()
    return left_out is None and not stored.run.phases and set(stored.run.nodes) >= fleet.nodes.keys()
