"""Which checks change their mind: how often a verdict turned between pass and fail over the last runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from assay.harness.results.compare import Comparison, Kind
from assay.harness.results.lines import WIDTH, short
from assay.harness.store.read import Stored
from assay.harness.store.tables import VERDICTS

RUNS = 10
FEWEST_FLIPS = 3
"""Passing, failing, passing again and failing again: a part that broke once and was mended once turned twice."""
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

    Of more than `MOST_KEYS`, so many are looked at; `looked_at_all` says whether that was all.
    """
    keys: set[Key] = set()
    for one in comparison.changes(*MOVES):
        keys.add((one.check, one.subject))
        if len(keys) >= MOST_KEYS:
            break  # a wave, of which little is one check's mood
    runs = [*earlier[-RUNS + 1 :], comparison.paths[1]]
    found = [Flapping(*key, *turned) for key, turned in flips(runs, keys).items() if turned[0] >= FEWEST_FLIPS]
    return sorted(found, key=lambda one: (-one.flips, one.subject, one.check))


def looked_at_all(comparison: Comparison) -> bool:
    """Return whether there were no more than can be looked at."""
    return sum(comparison.counts[one] for one in MOVES) <= MOST_KEYS


def flips(runs: Sequence[Path], keys: Collection[Key]) -> Mapping[Key, tuple[int, int]]:
    """Return for each check and subject how often its verdict turned over these runs, and how many of them judged it.

    Errors and skips are no verdicts on the part, and turn nothing.
    """
    seen: dict[Key, list[str]] = {key: [] for key in keys}
    for path in runs:
        with Stored.open(path) as stored:
            for key, verdict in _verdicts(stored, seen).items():
                seen[key].append(verdict)
    return {key: (turns(verdicts), len(verdicts)) for key, verdicts in seen.items()}


def turns(verdicts: Sequence[str]) -> int:
    """Return how often a row of verdicts turns."""
    return sum(one != other for one, other in pairwise(verdicts))


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
