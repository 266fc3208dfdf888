"""What changed between two runs beyond the usual: shifted measurements and flaky checks, by the files of earlier runs.

The rules are in `ledger.history.flaky`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median

from assay.ledger.history.flaky import (
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
from assay.ledger.runs.reader import StoredRun
from assay.model.outcome import VERDICTS
from assay.model.reading import format_value
from assay.validate.results.outcome_lines import SUBJECT_WIDTH, shorten_check
from assay.validate.results.paired_runs import PAIRED_FROM_NEW, open_newest_first
from assay.validate.results.run_comparison import ChangeKind, RunComparison

MAX_SHIFT_CANDIDATES = 5000
"""Only the largest shifts are examined closely."""
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
FLAKY_CANDIDATE_KINDS: tuple[ChangeKind, ...] = (
    "new_failure",
    "fixed",
    "still_failing",
    "newly_unknown",
    "judged_again",
)
MAX_FLAKY_CANDIDATES = 50_000


@dataclass(frozen=True, slots=True)
class MeasurementShift:
    """A measurement that shifted by more than its noise. `usual` is its median, over `runs` runs, as is `noise`."""

    check: str
    """The id of the check that measured it."""
    subject: str
    """What was measured: a node or a part of it."""
    name: str
    """The name of the measurement."""
    unit: str
    """The unit of all values; "" for a count or a ratio."""
    was: float
    """The value in the older run."""
    now: float
    """The value in the newer run."""
    usual: float
    """The median over `runs` earlier runs."""
    noise: float
    """How much it varies from run to run."""
    runs: int
    """Over how many earlier runs `usual` and `noise` are."""

    @property
    def times(self) -> float:
        """The shift in multiples of the noise."""
        return abs(self.now - self.was) / self.noise

    @property
    def line(self) -> str:
        """One line for people."""
        shift = f"{self.name} {format_value(self.was)} → {format_value(self.now)} {self.unit}".rstrip()
        usual = f"{format_value(round(self.usual, 3))} ± {self.noise:.2g} in {self.runs} runs before"
        return f"{self.subject:<{SUBJECT_WIDTH}} {shorten_check(self.check)}  {shift}, {usual}"


def find_shifts(comparison: RunComparison, earlier: Sequence[Path]) -> list[MeasurementShift]:
    """Return the shifts, the largest first. `earlier` are the files of the runs before the new one, oldest first."""
    if len(earlier) < MIN_VALUES:
        return []
    floors = estimate_noise_floors(_read_sample(comparison, earlier[-WINDOW_RUNS:]))
    if not floors:
        return []
    candidates = _find_candidates(comparison, floors)
    values_of = _read_past([*earlier, comparison.paths[1]], (series for series, *_ in candidates))
    shifts = []
    for series, unit, now, was in candidates:
        before = values_of[series][1:]
        noise = estimate_noise(before, floors[series.check, series.name])
        if noise and exceeds_noise(now, was, noise) and exceeds_noise(now, median(before), noise):
            values = (unit, was, now, median(before), noise, len(before))
            shifts.append(MeasurementShift(series.check, series.subject, series.name, *values))
    return sorted(shifts, key=lambda shift: -shift.times)


def _read_sample(comparison: RunComparison, runs: Sequence[Path]) -> dict[MeasurementSeries, list[float]]:
    """Return the values in these runs of all measurements on a sample of the new run's nodes."""
    values_of: dict[MeasurementSeries, dict[str, float]] = defaultdict(dict)
    nodes = sample_nodes(comparison.pair.query_column(_NODES))
    for stored in open_newest_first(runs):
        for series, document, value in _read_values(stored, "node", nodes):
            values_of[series].setdefault(document, value)
    return {series: [*values.values()] for series, values in values_of.items()}


def _read_past(runs: Sequence[Path], wanted: Iterable[MeasurementSeries]) -> dict[MeasurementSeries, list[float]]:
    """Return the values of each series, newest first: that of the newest run, and WINDOW_RUNS before it."""
    values_of: dict[MeasurementSeries, dict[str, float]] = {series: {} for series in wanted}
    for stored in open_newest_first(runs):
        left = {series for series, values in values_of.items() if len(values) <= WINDOW_RUNS}
        if not left:
            break
        for series, document, value in _read_values(stored, "name", {series.subject for series in left}):
            if series in left:
                values_of[series].setdefault(document, value)
    return {series: [*values.values()] for series, values in values_of.items()}


def _read_values(
    stored: StoredRun, column: str, places: Iterable[str]
) -> Iterator[tuple[MeasurementSeries, str, float]]:
    """Yield series, document (or else run) and value of the measurements on subjects with these names or nodes.

    `column` is `name` or `node`.
    """
    for *series, value, digest in stored.connection.execute(_VALUES.format(column), (json.dumps(sorted(places)),)):
        yield MeasurementSeries(*series), digest or stored.run.id, value


def _find_candidates(
    comparison: RunComparison, floors: NoiseFloors
) -> list[tuple[MeasurementSeries, str, float, float]]:
    """Return series, unit, new and old value of the measurements that moved by more than the noise floor."""
    connection = comparison.pair.connection
    connection.execute("CREATE TABLE usual (check_ TEXT, name TEXT, noise REAL, PRIMARY KEY (check_, name))")
    connection.executemany("INSERT INTO usual VALUES (?, ?, ?)", [(*key, noise) for key, noise in floors.items()])
    return [(MeasurementSeries(*row[:4]), *row[4:]) for row in connection.execute(_CANDIDATES)]


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
