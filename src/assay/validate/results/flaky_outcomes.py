"""Which of the checks that changed between two runs are flaky, by the files of earlier runs.

The rule is in `ledger.history.flaky`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from assay.ledger.history.flaky import WINDOW_RUNS, count_flaky_turns
from assay.model.outcome import VERDICTS
from assay.validate.results.outcome_lines import SUBJECT_WIDTH, shorten_check
from assay.validate.results.paired_runs import open_newest_first
from assay.validate.results.run_comparison import ChangeKind, RunComparison

FLAKY_CANDIDATE_KINDS: tuple[ChangeKind, ...] = (
    "new_failure",
    "fixed",
    "still_failing",
    "newly_unknown",
    "judged_again",
)
MAX_FLAKY_CANDIDATES = 50_000


CheckSubjectKey = tuple[str, str]
"""Check and subject."""


@dataclass(frozen=True, slots=True)
class FlakyOutcome:
    """A check on a subject whose verdict turned (see `count_flaky_turns`) in the last `runs` runs that judged it."""

    check: str
    """The id of the check."""
    subject: str
    """What was judged: a node, a part of it, a rack or a fabric."""
    flips: int
    """How often the verdict turned."""
    runs: int
    """Over how many of the last runs that judged it."""

    @property
    def line(self) -> str:
        """One line for people."""
        turns = f"turned {self.flips} times in {self.runs} runs"
        return f"{self.subject:<{SUBJECT_WIDTH}} {shorten_check(self.check)}  {turns}"


def find_flaky_outcomes(comparison: RunComparison, earlier: Sequence[Path]) -> list[FlakyOutcome]:
    """Return the flaky outcomes among those that changed or still fail, those that turned most often first.

    Only the first MAX_FLAKY_CANDIDATES changes are examined; `is_every_candidate_read` says whether those were all.
    More changes than that are a wave of failures, in which flaky checks matter little.
    """
    candidates = islice(comparison.changes(*FLAKY_CANDIDATE_KINDS), MAX_FLAKY_CANDIDATES)
    keys = {(change.check, change.subject) for change in candidates}
    flaky = [
        FlakyOutcome(*key, turns, len(verdicts))
        for key, verdicts in read_judgements([*earlier, comparison.paths[1]], keys).items()
        if (turns := count_flaky_turns(verdicts))
    ]
    return sorted(flaky, key=lambda outcome: (-outcome.flips, outcome.subject, outcome.check))


def is_every_candidate_read(comparison: RunComparison) -> bool:
    """Return whether all candidates for flaky outcomes were examined."""
    return sum(comparison.counts[kind] for kind in FLAKY_CANDIDATE_KINDS) <= MAX_FLAKY_CANDIDATES


def read_judgements(runs: Sequence[Path], keys: Iterable[CheckSubjectKey]) -> dict[CheckSubjectKey, list[str]]:
    """Return the last WINDOW_RUNS passes and failures of each check and subject in these runs, newest first."""
    verdicts_of: dict[CheckSubjectKey, list[str]] = {key: [] for key in keys}
    for stored in open_newest_first(runs):
        left = json.dumps([key for key, verdicts in verdicts_of.items() if len(verdicts) < WINDOW_RUNS])
        if left == "[]":
            break
        for check, subject, verdict in stored.connection.execute(_JUDGED, (left,)):
            verdicts_of[check, subject].append(VERDICTS[verdict])
    return verdicts_of


_JUDGED = f"""
SELECT c.name, s.name, o.verdict
FROM subject s CROSS JOIN outcome o ON o.subject = s.id CROSS JOIN check_ c ON c.id = o.check_
WHERE s.name IN (SELECT json_extract(value, '$[1]') FROM json_each(?1))
  AND (c.name, s.name) IN (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?1))
  AND o.verdict IN ({VERDICTS.index("pass")}, {VERDICTS.index("fail")})
"""
