"""Which checks change their mind, of what changed between two runs or fails still."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from assay.harness.results.compare import Comparison, Kind
from assay.harness.results.earlier import newest_first
from assay.harness.results.lines import WIDTH, short
from assay.harness.steadiness import RUNS, flips
from assay.harness.store.read import Stored
from assay.harness.store.tables import VERDICTS

MOVES: tuple[Kind, ...] = ("new_failure", "fixed", "still_failing", "newly_unknown", "judged_again")
MOST_KEYS = 50_000
Key = tuple[str, str]
"""Check and subject."""


@dataclass(frozen=True, slots=True)
class Flapping:
    """A check on a subject whose verdict turned `flips` times in the last `runs` runs that judged it."""

    check: str
    subject: str
    flips: int
    runs: int

    @property
    def line(self) -> str:
        """One line for people."""
        return f"{self.subject:<{WIDTH}} {short(self.check)}  turned {self.flips} times in {self.runs} runs"


def flapping(comparison: Comparison, earlier: Sequence[Path]) -> list[Flapping]:
    """Return what flaps of what changed between two runs or fails still, what turned most often first.

    Of more than `MOST_KEYS`, so many are looked at (a wave, of which little is one check's mood); `looked_at_all` says
    whether that was all.
    """
    keys = {(one.check, one.subject) for one in islice(comparison.changes(*MOVES), MOST_KEYS)}
    known = judgements([*earlier, comparison.paths[1]], keys)
    found = [Flapping(*key, turned, len(verdicts)) for key, verdicts in known.items() if (turned := flips(verdicts))]
    return sorted(found, key=lambda one: (-one.flips, one.subject, one.check))


def looked_at_all(comparison: Comparison) -> bool:
    """Return whether there were no more than can be looked at."""
    return sum(comparison.counts[one] for one in MOVES) <= MOST_KEYS


def judgements(runs: Sequence[Path], keys: Collection[Key]) -> dict[Key, list[str]]:
    """Return the last `RUNS` passes and failures of checks on subjects in these runs, newest first."""
    found: dict[Key, list[str]] = {key: [] for key in keys}
    for stored in newest_first(runs):
        left = [key for key, verdicts in found.items() if len(verdicts) < RUNS]
        if not left:
            break
        for key, verdict in _verdicts(stored, left).items():
            found[key].append(verdict)
    return found


def _verdicts(stored: Stored, keys: Collection[Key]) -> dict[Key, str]:
    """Return the verdicts of a run: those that are `pass` or `fail`."""
    connection = stored.connection
    subjects = _numbers(connection.execute("SELECT name, id FROM subject"), {subject for _, subject in keys})
    checks = _numbers(connection.execute("SELECT name, id FROM check_"), {check for check, _ in keys})
    query = "SELECT verdict FROM outcome WHERE subject = ? AND check_ = ?"
    found = {}
    for check, subject in keys:
        for pair in ((s, c) for s in subjects.get(subject, ()) for c in checks.get(check, ())):
            row = connection.execute(query, pair).fetchone()
            if row is not None and VERDICTS[row[0]] in ("pass", "fail"):
                found[check, subject] = VERDICTS[row[0]]
    return found


def _numbers(rows: Iterable[tuple[str, int]], wanted: Collection[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for name, number in rows:
        if name in wanted:
            found.setdefault(name, []).append(number)
    return found
