"""Which checks change their mind, of what changed between two runs or fails still."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from assay.harness.results.compare import Comparison, Kind
from assay.harness.results.earlier import newest_first
from assay.harness.results.lines import WIDTH, short
from assay.harness.steadiness import RUNS, flips
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


def judgements(runs: Sequence[Path], keys: Iterable[Key]) -> dict[Key, list[str]]:
    """Return the last `RUNS` passes and failures of checks on subjects in these runs, newest first."""
    found: dict[Key, list[str]] = {key: [] for key in keys}
    for stored in newest_first(runs):
        left = json.dumps([key for key, verdicts in found.items() if len(verdicts) < RUNS])
        if left == "[]":
            break
        for check, subject, verdict in stored.connection.execute(_JUDGED, (left,)):
            found[check, subject].append(VERDICTS[verdict])
    return found


_JUDGED = f"""
SELECT c.name, s.name, o.verdict
FROM subject s CROSS JOIN outcome o ON o.subject = s.id CROSS JOIN check_ c ON c.id = o.check_
WHERE s.name IN (SELECT json_extract(value, '$[1]') FROM json_each(?1))
  AND (c.name, s.name) IN (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?1))
  AND o.verdict IN ({VERDICTS.index("pass")}, {VERDICTS.index("fail")})
"""
