"""What changed since a time: what broke, what was mended, what cannot be told any more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from assay.results.report.latest_outcomes import LatestOutcomes, ReportedRun
from assay.results.report.latest_outcomes_schema import FAILING, PASSING, UNKNOWN

DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class StatusChange:
    """One check and subject that stands otherwise than it did; `before` is None where it was not judged yet."""

    check: str
    subject: str
    holder: str
    before: int | None
    now: int
    reason: str = ""

    @property
    def broke(self) -> bool:
        """Whether it fails now, and did not."""
        return self.now == FAILING != self.before

    @property
    def lost(self) -> bool:
        """Whether it cannot be judged now, and could be."""
        return self.now == UNKNOWN != self.before

    @property
    def mended(self) -> bool:
        """Whether it failed, and passes now."""
        return self.now == PASSING and self.before == FAILING


_CHANGES = f"""
WITH later AS (SELECT n FROM told WHERE at > :since),
before AS (SELECT p.subject, p.check_, p.stood, min(t.run) FROM past p JOIN told t ON t.n = p.run
  WHERE p.run IN later GROUP BY p.subject, p.check_),
both AS (SELECT subject, check_, stood FROM before
  UNION ALL SELECT o.subject, o.check_, NULL FROM state o
  WHERE o.stands IN ({FAILING}, {UNKNOWN}) AND o.first IN later)
SELECT o.check_, o.subject, CASE WHEN o.first IN later THEN NULL ELSE b.stood END, o.stands, o.reason
FROM both b JOIN state o ON o.subject = b.subject AND o.check_ = b.check_
GROUP BY o.subject, o.check_
"""
_AMISS = f"SELECT check_, subject, stands, stands, reason FROM state WHERE stands IN ({FAILING}, {UNKNOWN})"


def find_changes(standing: LatestOutcomes, since: float) -> Iterator[StatusChange]:
    """Yield what stands otherwise than it did at a time (Unix seconds).

    What was not judged yet at that time is told where it fails now or cannot be judged.
    """
    for change in _read_changes(standing, standing.connection.execute(_CHANGES, {"since": since})):
        if change.before != change.now and (change.before is not None or change.now in (FAILING, UNKNOWN)):
            yield change


def find_unchanged(standing: LatestOutcomes, changed: Collection[StatusChange]) -> Iterator[StatusChange]:
    """Yield what fails or cannot be judged as it did before: all that is amiss but what `changed`."""
    new = {(change.check, change.subject) for change in changed}
    for change in _read_changes(standing, standing.connection.execute(_AMISS)):
        if (change.check, change.subject) not in new:
            yield change


def _read_changes(
    standing: LatestOutcomes, rows: Iterable[tuple[int, int, int | None, int, int | None]]
) -> Iterator[StatusChange]:
    """Yield rows of numbers as changes. Names are shared: a dead collector changes a million outcomes."""
    ask = standing.connection.execute
    checks = dict(ask("SELECT id, name FROM check_"))
    subjects: dict[int, tuple[str, str]] = {}
    holders: dict[str, str] = {}
    reasons: dict[int | None, str] = {None: ""}
    for check, subject, before, now, reason in rows:
        if subject not in subjects:
            name, holder = ask("SELECT name, holder FROM subject WHERE id = ?", (subject,)).fetchone()
            subjects[subject] = name, holders.setdefault(holder, holder)
        if reason not in reasons:
            (reasons[reason],) = ask("SELECT text FROM text WHERE id = ?", (reason,)).fetchone()
        yield StatusChange(checks[check], *subjects[subject], before, now, reasons[reason])


def find_baseline(points: Sequence[ReportedRun], window_s: float = DAY_S) -> ReportedRun:
    """Return the run to compare with: the newest that is older than the window, else the oldest there is."""
    older = [one for one in points if one.at <= points[-1].at - window_s]
    return older[-1] if older else points[0]
