"""Measurements that moved more between two runs than they move by themselves.

A measurement's noise is the spread of its values over earlier runs, each of other evidence: 1.4826 × MAD, the standard
deviation if they are normal (Rousseeuw and Croux, 1993). Where that is larger, it is what is usual for this measurement
on other subjects, as few values often lie closer together than they should. It moved when it is further than `TIMES`
its noise from where it was in the older run, and from the median of the earlier ones. Fewer than `LEAST` values, or a
number that moves nowhere: its noise is not known, and nothing is claimed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median

from assay.harness.results.compare import Comparison
from assay.harness.results.lined_up import FROM_NEW
from assay.harness.results.lines import WIDTH, short
from assay.harness.store.read import Stored
from assay.harness.told import plainly

RUNS, LEAST, TIMES = 10, 5, 5.0
SAMPLE = 60
"""Subjects of a kind whose past tells what is usual; a median of so many is steady to a tenth."""
MOST = 5000
"""Of what moved furthest, so many are looked at closely."""
NORMAL = 1.4826
FEW = {5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}
"""What the spread of so few values is too small by (Croux and Rousseeuw, 1992); of more, n / (n - 0.8)."""

Series = tuple[str, str, int]
"""Check, subject, and the place of the measurement among those of the outcome."""


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
    runs = earlier[-RUNS:]
    usual = usual_noise(past(runs, _sample(comparison))) if len(runs) >= LEAST else {}
    if not usual:
        return []
    candidates = _candidates(comparison, usual)
    known = past(runs, {(check, subject) for check, subject, *_ in candidates})
    found = []
    for check, subject, n, name, unit, now, was in candidates:
        values = known.get((check, subject, n), {}).get(name, [])
        one = judged(values, was, now, usual[check, name])
        if one is not None:
            found.append(Moved(check, subject, name, unit, was, now, *one, len(values)))
    return sorted(found, key=lambda one: -one.times)


def judged(values: Sequence[float], was: float, now: float, usual: float) -> tuple[float, float] | None:
    """Return median and noise of earlier values where `now` is beyond it, from them and from `was`; else None."""
    if len(values) < LEAST:
        return None
    middle, noise = median(values), max(spread(values), usual)
    if not noise or min(abs(now - middle), abs(now - was)) <= TIMES * noise:
        return None
    return middle, noise


def spread(values: Sequence[float]) -> float:
    """Return the robust standard deviation of values, at least `LEAST` of them."""
    middle, number = median(values), len(values)
    return NORMAL * FEW.get(number, number / (number - 0.8)) * median(abs(value - middle) for value in values)


def usual_noise(known: Mapping[Series, Mapping[str, Sequence[float]]]) -> dict[tuple[str, str], float]:
    """Return by check and measurement the median of the spreads of its series; none where they do not spread."""
    spreads: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (check, _, _), gauges in known.items():
        for name, values in gauges.items():
            if len(values) >= LEAST:
                spreads[check, name].append(spread(values))
    return {key: usual for key, of_key in spreads.items() if (usual := median(of_key)) > 0}


def past(runs: Iterable[Path], keys: Collection[tuple[str, str]]) -> dict[Series, dict[str, list[float]]]:
    """Return the values of checks on subjects in these runs, by measurement; the same evidence counts once."""
    found: dict[Series, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    seen: set[tuple[str, str, str]] = set()
    checks, subjects = {check for check, _ in keys}, {subject for _, subject in keys}
    for path in runs:
        with Stored.open(path) as stored:
            numbers = stored.connection.execute("SELECT id, name FROM subject")
            wanted = [(number, name) for number, name in numbers if name in subjects]
            for number, subject in wanted:
                fresh: set[tuple[str, str, str]] = set()
                for check, n, name, value, digest in stored.connection.execute(_VALUES, (number,)):
                    if check in checks and (check, subject) in keys and (check, subject, digest) not in seen:
                        fresh.add((check, subject, digest))
                        found[check, subject, n][name].append(value)
                seen |= fresh
    return found


_VALUES = """
SELECT c.name, m.n, g.name, m.value, coalesce(d.digest, '')
FROM measurement m JOIN outcome o USING (subject, check_) JOIN check_ c ON c.id = m.check_
JOIN gauge g ON g.id = m.gauge LEFT JOIN document d ON d.id = o.document WHERE m.subject = ?
"""
_CANDIDATES = f"""
SELECT c1.name, s1.name, m.n, g.name, g.unit, m.value, p.value
FROM {FROM_NEW} CROSS JOIN new.measurement m ON m.subject = n.subject AND m.check_ = n.check_
CROSS JOIN old.measurement p ON p.subject = o.subject AND p.check_ = o.check_ AND p.n = m.n
CROSS JOIN new.gauge g ON g.id = m.gauge CROSS JOIN old.gauge h ON h.id = p.gauge AND h.name = g.name
CROSS JOIN check_new c1 ON c1.id = n.check_ CROSS JOIN usual u ON u.check_ = c1.name AND u.name = g.name
CROSS JOIN subject_new s1 ON s1.id = n.subject
WHERE abs(m.value - p.value) > {TIMES} * u.noise ORDER BY abs(m.value - p.value) / u.noise DESC LIMIT {MOST}
"""


def _candidates(
    comparison: Comparison, usual: Mapping[tuple[str, str], float]
) -> list[tuple[str, str, int, str, str, float, float]]:
    """Return what moved between the two runs by more than is usual."""
    connection = comparison.sides.connection
    connection.execute("CREATE TABLE usual (check_ TEXT, name TEXT, noise REAL, PRIMARY KEY (check_, name))")
    connection.executemany("INSERT INTO usual VALUES (?, ?, ?)", [(*key, noise) for key, noise in usual.items()])
    return connection.execute(_CANDIDATES).fetchall()


def _sample(comparison: Comparison) -> set[tuple[str, str]]:
    """Return check and subject of what is measured on some subjects of every kind, spread over all of them."""
    connection = comparison.sides.connection
    kinds: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for number, name in connection.execute("SELECT id, name FROM subject_new"):
        kinds[name.rpartition("/")[2].rstrip("0123456789") if name.count("/") > 1 else ""].append((number, name))
    chosen = [one for of_kind in kinds.values() for one in _spread_over(of_kind)]
    query = "SELECT DISTINCT c.name FROM new.measurement m JOIN check_new c ON c.id = m.check_ WHERE m.subject = ?"
    return {(check, name) for number, name in chosen for (check,) in connection.execute(query, (number,))}


def _spread_over(subjects: list[tuple[int, str]]) -> Iterable[tuple[int, str]]:
    return islice(subjects, 0, None, max(1, len(subjects) // SAMPLE))
