"""Measurements that moved more between two runs than they move by themselves, as `harness.steadiness` has it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from assay.harness.results.compare import Comparison
from assay.harness.results.earlier import newest_first
from assay.harness.results.lined_up import FROM_NEW
from assay.harness.results.lines import WIDTH, short
from assay.harness.steadiness import LEAST, RUNS, TIMES, Floors, Series, floors, is_far, noise_of, sample
from assay.harness.store.read import Stored
from assay.harness.told import plainly

MOST = 5000
"""Of what moved furthest, so many are looked at closely."""


@dataclass(frozen=True, slots=True)
class Moved:
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
        moved = f"{self.name} {plainly(self.was)} → {plainly(self.now)} {self.unit}".rstrip()
        usual = f"{plainly(round(self.usual, 3))} ± {self.noise:.2g} in {self.runs} runs before"
        return f"{self.subject:<{WIDTH}} {short(self.check)}  {moved}, {usual}"


def moved(comparison: Comparison, earlier: Sequence[Path]) -> list[Moved]:
    """Return what moved most first; `earlier` are the files of the runs before the new one, oldest first."""
    usual = floors(_pool(comparison, earlier[-RUNS:])) if len(earlier) >= LEAST else {}
    if not usual:
        return []
    candidates = _candidates(comparison, usual)
    known = _past([*earlier, comparison.paths[1]], (series for series, *_ in candidates))
    found = []
    for series, unit, now, was in candidates:
        before = known[series][1:]
        noise = noise_of(before, usual[series.check, series.name])
        if noise and is_far(now, was, noise) and is_far(now, median(before), noise):
            about = (unit, was, now, median(before), noise, len(before))
            found.append(Moved(series.check, series.subject, series.name, *about))
    return sorted(found, key=lambda one: -one.times)


def _pool(comparison: Comparison, runs: Sequence[Path]) -> dict[Series, list[float]]:
    """Return the values in these runs of everything that is measured on some nodes of the new one."""
    known: dict[Series, dict[str, float]] = defaultdict(dict)
    nodes = sample(comparison.sides.names(_NODES))
    for stored in newest_first(runs):
        for series, document, value in _values(stored, "node", nodes):
            known[series].setdefault(document, value)
    return {series: [*values.values()] for series, values in known.items()}


def _past(runs: Sequence[Path], wanted: Iterable[Series]) -> dict[Series, list[float]]:
    """Return the values of series, newest first: `RUNS`, and the one that they are to tell of."""
    known: dict[Series, dict[str, float]] = {series: {} for series in wanted}
    for stored in newest_first(runs):
        left = {series for series, values in known.items() if len(values) <= RUNS}
        if not left:
            break
        for series, document, value in _values(stored, "name", {one.subject for one in left}):
            if series in left:
                known[series].setdefault(document, value)
    return {series: [*values.values()] for series, values in known.items()}


def _values(stored: Stored, column: str, places: Iterable[str]) -> Iterator[tuple[Series, str, float]]:
    """Yield what was measured on subjects by their `name` or `node`, with its document (of none: its run)."""
    for *about, value, digest in stored.connection.execute(_VALUES.format(column), (json.dumps(sorted(places)),)):
        yield Series(*about), digest or stored.run.id, value


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
FROM {FROM_NEW} CROSS JOIN new.measurement m ON m.subject = n.subject AND m.check_ = n.check_
CROSS JOIN old.measurement p ON p.subject = o.subject AND p.check_ = o.check_ AND p.n = m.n
CROSS JOIN new.gauge g ON g.id = m.gauge CROSS JOIN old.gauge h ON h.id = p.gauge AND h.name = g.name
CROSS JOIN check_new c1 ON c1.id = n.check_ CROSS JOIN usual u ON u.check_ = c1.name AND u.name = g.name
CROSS JOIN subject_new s1 ON s1.id = n.subject
WHERE abs(m.value - p.value) > {TIMES} * u.noise AND abs(m.value) < 9e999
ORDER BY abs(m.value - p.value) / u.noise DESC LIMIT {MOST}
"""


def _candidates(comparison: Comparison, usual: Floors) -> list[tuple[Series, str, float, float]]:
    """Return what moved between the two runs by more than is usual: which, its unit, what it is and what it was."""
    connection = comparison.sides.connection
    connection.execute("CREATE TABLE usual (check_ TEXT, name TEXT, noise REAL, PRIMARY KEY (check_, name))")
    connection.executemany("INSERT INTO usual VALUES (?, ?, ?)", [(*key, noise) for key, noise in usual.items()])
    return [(Series(*row[:4]), *row[4:]) for row in connection.execute(_CANDIDATES)]
