"""Measurements that moved more between two runs than they move by themselves, as `harness.steadiness` has it.

Which checks change their mind, of what changed between two runs or fails still.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median

from assay.model.traced_values import format_value
from assay.results.comparison.paired_runs import PAIRED_FROM_NEW
from assay.results.comparison.run_comparison import ChangeKind, RunComparison
from assay.results.flaky_and_noise_rules import (
    MIN_VALUES,
    NOISE_FACTOR,
    WINDOW_RUNS,
    MeasurementSeries,
    NoiseFloors,
    count_flaky_turns,
    estimate_noise,
    estimate_noise_floors,
    exceeds_noise,
    sample_nodes,
)
from assay.results.outcome_lines import SUBJECT_WIDTH, shorten_check
from assay.results.store.reader import StoredRun
from assay.results.store.run_lookup import open_newest_first
from assay.results.store.schema import VERDICTS

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
    """A check on a subject whose verdict turned `count_flaky_turns` times in the last `runs` runs that judged it."""

    check: str
    subject: str
    flips: int
    runs: int

    @property
    def line(self) -> str:
        """One line for people."""
        return f"{self.subject:<{SUBJECT_WIDTH}} {shorten_check(self.check)}  turned {self.flips} times in {self.runs} runs"


def find_flaky_outcomes(comparison: RunComparison, earlier: Sequence[Path]) -> list[FlakyOutcome]:
    """Return what flaps of what changed between two runs or fails still, what turned most often first.

    Of more than `MAX_FLAKY_CANDIDATES`, so many are looked at (a wave, of which little is one check's mood); `is_every_candidate_read` says
    whether that was all.
    """
    keys = {
        (one.check, one.subject) for one in islice(comparison.changes(*FLAKY_CANDIDATE_KINDS), MAX_FLAKY_CANDIDATES)
    }
    known = read_judgements([*earlier, comparison.paths[1]], keys)
    found = [
        FlakyOutcome(*key, turned, len(verdicts))
        for key, verdicts in known.items()
        if (turned := count_flaky_turns(verdicts))
    ]
    return sorted(found, key=lambda one: (-one.flips, one.subject, one.check))


def is_every_candidate_read(comparison: RunComparison) -> bool:
    """Return whether there were no more than can be looked at."""
    return sum(comparison.counts[one] for one in FLAKY_CANDIDATE_KINDS) <= MAX_FLAKY_CANDIDATES


def read_judgements(runs: Sequence[Path], keys: Iterable[CheckSubjectKey]) -> dict[CheckSubjectKey, list[str]]:
    """Return the last `WINDOW_RUNS` passes and failures of checks on subjects in these runs, newest first."""
    found: dict[CheckSubjectKey, list[str]] = {key: [] for key in keys}
    for stored in open_newest_first(runs):
        left = json.dumps([key for key, verdicts in found.items() if len(verdicts) < WINDOW_RUNS])
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


MAX_SHIFT_CANDIDATES = 5000
"""Of what moved furthest, so many are looked at closely."""


@dataclass(frozen=True, slots=True)
class MeasurementShift:
    """A measurement that moved by `times` its noise; `usual` and `noise` are its median and spread over `runs` runs."""

    check: str
    subject: str
    name: str
    unit: str
    was: float
    now: float
    usual: float
    noise: float
    runs: int

    @property
    def times(self) -> float:
        """How many times its noise it is from where it was."""
        return abs(self.now - self.was) / self.noise

    @property
    def line(self) -> str:
        """One line for people."""
        moved = f"{self.name} {format_value(self.was)} → {format_value(self.now)} {self.unit}".rstrip()
        usual = f"{format_value(round(self.usual, 3))} ± {self.noise:.2g} in {self.runs} runs before"
        return f"{self.subject:<{SUBJECT_WIDTH}} {shorten_check(self.check)}  {moved}, {usual}"


def find_shifts(comparison: RunComparison, earlier: Sequence[Path]) -> list[MeasurementShift]:
    """Return what moved most first; `earlier` are the files of the runs before the new one, oldest first."""
    usual = (
        estimate_noise_floors(_read_sample(comparison, earlier[-WINDOW_RUNS:])) if len(earlier) >= MIN_VALUES else {}
    )
    if not usual:
        return []
    candidates = _find_candidates(comparison, usual)
    known = _read_past([*earlier, comparison.paths[1]], (series for series, *_ in candidates))
    found = []
    for series, unit, now, was in candidates:
        before = known[series][1:]
        noise = estimate_noise(before, usual[series.check, series.name])
        if noise and exceeds_noise(now, was, noise) and exceeds_noise(now, median(before), noise):
            about = (unit, was, now, median(before), noise, len(before))
            found.append(MeasurementShift(series.check, series.subject, series.name, *about))
    return sorted(found, key=lambda one: -one.times)


def _read_sample(comparison: RunComparison, runs: Sequence[Path]) -> dict[MeasurementSeries, list[float]]:
    """Return the values in these runs of everything that is measured on some nodes of the new one."""
    known: dict[MeasurementSeries, dict[str, float]] = defaultdict(dict)
    nodes = sample_nodes(comparison.pair.query_column(_NODES))
    for stored in open_newest_first(runs):
        for series, document, value in _read_values(stored, "node", nodes):
            known[series].setdefault(document, value)
    return {series: [*values.values()] for series, values in known.items()}


def _read_past(runs: Sequence[Path], wanted: Iterable[MeasurementSeries]) -> dict[MeasurementSeries, list[float]]:
    """Return the values of series, newest first: `WINDOW_RUNS`, and the one that they are to tell of."""
    known: dict[MeasurementSeries, dict[str, float]] = {series: {} for series in wanted}
    for stored in open_newest_first(runs):
        left = {series for series, values in known.items() if len(values) <= WINDOW_RUNS}
        if not left:
            break
        for series, document, value in _read_values(stored, "name", {one.subject for one in left}):
            if series in left:
                known[series].setdefault(document, value)
    return {series: [*values.values()] for series, values in known.items()}


def _read_values(
    stored: StoredRun, column: str, places: Iterable[str]
) -> Iterator[tuple[MeasurementSeries, str, float]]:
    """Yield what was measured on subjects by their `name` or `node`, with its document (of none: its run)."""
    for *about, value, digest in stored.connection.execute(_VALUES.format(column), (json.dumps(sorted(places)),)):
        yield MeasurementSeries(*about), digest or stored.run.id, value


_NODES = """
SELECT DISTINCT node FROM new.subject s WHERE EXISTS (SELECT 1 FROM new.measurement m WHERE m.subject = s.id)
"""
_VALUES = """
SELECT c.name, s.name, m.n, g.name, m.value, d.digest
FROM subject s CROSS JOIN measurement m ON m.subject = s.id CROSS JOIN outcome o USING (subject, check_)
JOIN check_ c ON c.id = m.check_ JOIN gauge g ON g.id = m.gauge LEFT JOIN document d ON d.id = o.document
WHERE s.{} IN (SELECT value FROM json_each(?)) AND abs(m.value) < 9e999
"""
_CANDIDATES = f"""
SELECT c1.name, s1.name, m.n, g.name, g.unit, m.value, p.value
FROM {PAIRED_FROM_NEW} CROSS JOIN new.measurement m ON m.subject = n.subject AND m.check_ = n.check_
CROSS JOIN old.measurement p ON p.subject = o.subject AND p.check_ = o.check_ AND p.n = m.n
CROSS JOIN new.gauge g ON g.id = m.gauge CROSS JOIN old.gauge h ON h.id = p.gauge AND h.name = g.name
CROSS JOIN check_new c1 ON c1.id = n.check_ CROSS JOIN usual u ON u.check_ = c1.name AND u.name = g.name
CROSS JOIN subject_new s1 ON s1.id = n.subject
WHERE abs(m.value - p.value) > {NOISE_FACTOR} * u.noise AND abs(m.value) < 9e999
ORDER BY abs(m.value - p.value) / u.noise DESC LIMIT {MAX_SHIFT_CANDIDATES}
"""


def _find_candidates(
    comparison: RunComparison, usual: NoiseFloors
) -> list[tuple[MeasurementSeries, str, float, float]]:
    """Return what moved between the two runs by more than is usual: which, its unit, what it is and what it was."""
    connection = comparison.pair.connection
    connection.execute("CREATE TABLE usual (check_ TEXT, name TEXT, noise REAL, PRIMARY KEY (check_, name))")
    connection.executemany("INSERT INTO usual VALUES (?, ?, ?)", [(*key, noise) for key, noise in usual.items()])
    return [(MeasurementSeries(*row[:4]), *row[4:]) for row in connection.execute(_CANDIDATES)]
