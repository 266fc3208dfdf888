"""Finds what changed since a time: new failures, fixes, and outcomes that are no longer known.

Failures that a running rollout will remove are set apart: drift of nodes whose wave has not come, or that are on their
way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from assay.model.facts import frozen
from assay.model.outcome import VERDICTS
from assay.tell.report.latest_outcomes import FAILING, PASSING, UNKNOWN, LatestOutcomes, ReportedRun
from assay.validate.results.run_summary import FailureCause, find_cause

DAY_S = 86400.0


@frozen
class StatusChange:
    """A change of the status of one check and subject; `before` is None where it was not judged before."""

    check: str
    subject: str
    holder: str
    before: int | None
    now: int
    reason: str = ""

    @property
    def cause(self) -> FailureCause:
        """What it shares with other changes of the same cause."""
        node = self.holder if "/" not in self.holder else ""
        return find_cause(self.check, VERDICTS[self.now], self.reason, node)

    @property
    def broke(self) -> bool:
        """Whether it newly fails."""
        return self.now == FAILING != self.before

    @property
    def lost(self) -> bool:
        """Whether it newly cannot be judged."""
        return self.now == UNKNOWN != self.before

    @property
    def fixed(self) -> bool:
        """Whether it failed before and passes now."""
        return self.now == PASSING and self.before == FAILING


_LATER = f"""
SELECT o.check_, o.subject, o.stands, o.reason FROM state o JOIN told t ON t.n = o.run
WHERE t.at > ? AND (o.stands IN ({FAILING}, {UNKNOWN}) OR (o.stands = {PASSING} AND o.has_failed))
"""
"""What may be a change: of passes, only those of what has ever failed."""
_NOT_PASSING = f"SELECT check_, subject, stands, reason FROM state WHERE stands IN ({FAILING}, {UNKNOWN})"


def find_changes(latest: LatestOutcomes, since: float) -> Iterator[StatusChange]:
    """Yield what broke, was lost, or was fixed since a time (Unix seconds)."""
    later = list(_read_changes(latest, latest.connection.execute(_LATER, (since,))))
    before = latest.read_statuses({(change.check, change.subject) for change in later}, since)
    for change in later:
        was = before.get((change.check, change.subject))
        if was != change.now and (was == FAILING or change.now != PASSING):
            yield replace(change, before=was)


def find_unchanged(latest: LatestOutcomes, changed: Collection[StatusChange]) -> Iterator[StatusChange]:
    """Yield what fails or cannot be judged, except for what is in `changed`."""
    new = {(change.check, change.subject) for change in changed}
    for change in _read_changes(latest, latest.connection.execute(_NOT_PASSING)):
        if (change.check, change.subject) not in new:
            yield change


def _read_changes(latest: LatestOutcomes, rows: Iterable[tuple[int, int, int, int]]) -> Iterator[StatusChange]:
    """Yield rows of ids as changes. Texts are shared objects: a dead collector changes a million outcomes."""
    execute = latest.connection.execute
    checks = dict(execute("SELECT id, name FROM check_"))
    subjects: dict[int, tuple[str, str]] = {}
    holders: dict[str, str] = {}
    reasons: dict[int, str] = {}
    for check, subject, now, reason in rows:
        if subject not in subjects:
            name, holder = execute("SELECT name, holder FROM subject WHERE id = ?", (subject,)).fetchone()
            subjects[subject] = name, holders.setdefault(holder, holder)
        if reason not in reasons:
            (reasons[reason],) = execute("SELECT text FROM text WHERE id = ?", (reason,)).fetchone()
        yield StatusChange(checks[check], *subjects[subject], now, now, reasons[reason])


def find_baseline(runs: Sequence[ReportedRun], window_s: float = DAY_S) -> ReportedRun:
    """Return the run to compare with: the newest before the window, else the oldest. `runs` are oldest first."""
    before = [run for run in runs if run.at <= runs[-1].at - window_s]
    return before[-1] if before else runs[0]


@frozen
class RolloutWaits:
    """The rollout's id, "" without one; its nodes that are not done; the checks whose failure is drift."""

    rollout: str = ""
    nodes: frozenset[str] = frozenset()
    checks: frozenset[str] = frozenset()

    def explains(self, change: StatusChange) -> bool:
        """Whether the rollout explains this failure. Any other failure on the same node is a real one."""
        return change.now == FAILING and change.holder in self.nodes and change.check in self.checks

    def select_rest(self, changes: Iterable[StatusChange]) -> Iterator[StatusChange]:
        """Yield the changes that the rollout does not explain."""
        return (change for change in changes if not self.explains(change))


NO_ROLLOUT = RolloutWaits()
