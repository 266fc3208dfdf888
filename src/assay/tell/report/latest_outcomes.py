"""The latest outcome of each check on each subject: what the overview and the Allure report are made of.

The ledger says which outcomes are the newest. What a run alone has comes from its file: excuses, measurements and
artefacts. All of it is put into tables in memory, so that a report counts in SQL.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from assay.ledger.runs.reader import RUN_FILE, StoredRun
from assay.ledger.runs.schema import deciding_condition
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.outcome import VERDICTS, FailureArtefact, Measurement, Outcome, read_whole

PASSING, FAILING, UNKNOWN, SKIPPED, KNOWN, ON_TRIAL, ON_TRIAL_PASSING = range(7)
"""The status of a check on a subject. The first four are the verdicts; the others count against nobody, since a known
issue or stage `observe` excuses them."""

MAX_CHANGE_AGE_S = 30 * 86400
"""What stood before a change is looked for in the runs of so long."""
_TABLES = """
CREATE TABLE told (n INTEGER PRIMARY KEY, run TEXT NOT NULL, at REAL NOT NULL, spec TEXT NOT NULL);
CREATE TABLE check_ (id INTEGER PRIMARY KEY, name TEXT NOT NULL, area TEXT NOT NULL, fault TEXT NOT NULL,
  phases TEXT NOT NULL, fresh_hours REAL);
CREATE TABLE subject (id INTEGER PRIMARY KEY, name TEXT NOT NULL, scope TEXT NOT NULL, holder TEXT NOT NULL);
CREATE INDEX of_holder ON subject (holder);
CREATE TABLE text (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE state (subject INTEGER NOT NULL, check_ INTEGER NOT NULL, stands INTEGER NOT NULL, reason INTEGER NOT NULL,
  measured REAL NOT NULL, run INTEGER NOT NULL, micros INTEGER NOT NULL, has_failed INTEGER NOT NULL, known TEXT,
  PRIMARY KEY (subject, check_)) WITHOUT ROWID;
"""
"""Checks, subjects and texts have the numbers that they have in the ledger."""
_INDEX = f"CREATE INDEX amiss ON state (stands, run) WHERE stands NOT IN ({PASSING}, {ON_TRIAL_PASSING})"
_EXCUSE = "UPDATE state SET stands = ?, known = ? WHERE subject = ? AND check_ = ? AND run = ?"
_ON_TRIAL = f"""
SELECT c.name, s.name FROM outcome o JOIN check_ c ON c.id = o.check_ JOIN subject s ON s.id = o.subject
WHERE o.observed AND o.verdict = {VERDICTS.index("pass")}
"""


def find_status(outcome: Outcome) -> int:
    """Return the status of a run's outcome."""
    if outcome.verdict in ("fail", "error") and outcome.known:
        return KNOWN
    if outcome.observed:
        return ON_TRIAL_PASSING if outcome.verdict == "pass" else ON_TRIAL
    return VERDICTS.index(outcome.verdict)


def find_holder(subject: str, node: str) -> str:
    """Return the holder of a subject: its node, or the rack or fabric that it names (`h100-a/rack-r01`)."""
    return node or read_whole(subject)


def suite_area(check: str) -> str:
    """Return the suite module of a check, `production/gpu` of `suites/production/test_gpu.py::test_gpu_temperature`."""
    folder, _, module = check.partition("::")[0].removeprefix("suites/").removesuffix(".py").rpartition("/")
    return f"{folder}/{module.removeprefix('test_')}".removeprefix("/")


@frozen
class ReportedRun:
    """A recorded run: its number in the ledger, its id, its time (Unix seconds), and its specs."""

    n: int
    run: str
    at: float
    spec: str


@frozen
class AbnormalOutcome:
    """A check and subject that does not pass. `status` is FAILING or another status; `measured` is in Unix seconds."""

    check: str
    subject: str
    status: int
    reason: str
    known: str
    measured: float
    run: str
    fault: str
    measurements: tuple[Measurement, ...] = ()
    artefacts: tuple[FailureArtefact, ...] = ()


class AreaCounts(NamedTuple):
    """The checks of an area on a holder: the number with each status."""

    area: str
    counts: tuple[tuple[int, int], ...]


class StatusShape(NamedTuple):
    """What most holders of a kind share: the counts of each area, those of all areas by status, and the phases."""

    areas: tuple[AreaCounts, ...]
    totals: Mapping[int, int]
    phases: tuple[str, ...]


@dataclass(frozen=True)
class HolderStatus:
    """A node, rack or fabric, with the status of all checks on it and its parts.

    `measured` is the time of its newest evidence (Unix seconds). `micros`: how long the checks of each area took. Of
    the passes, `stale` are on evidence that was older than the policy allows when the newest run began; they say
    nothing.
    """

    name: str
    scope: str
    measured: float
    run: str
    shape: StatusShape
    micros: tuple[int, ...]
    abnormal: list[AbnormalOutcome] = field(default_factory=list)
    stale: int = 0

    def count(self, *statuses: int) -> int:
        """Return the number of checks with one of these statuses (none: with any)."""
        totals = self.shape.totals
        return sum([totals.get(status, 0) for status in statuses]) if statuses else sum(totals.values())


_HOLDERS = """
CREATE TABLE IF NOT EXISTS holder_status AS
SELECT s.holder, s.scope, c.area, o.stands, count(*), sum(o.micros), max(o.measured), max(o.run)
FROM subject s JOIN state o ON o.subject = s.id JOIN check_ c ON c.id = o.check_
GROUP BY s.holder, c.area, o.stands ORDER BY s.holder, c.area, o.stands
"""
"""Read for the overview and for Allure, and counted once."""
MOST_SHAPES = 1024
_STALE = f"""
SELECT s.holder, count(*) FROM check_ c JOIN state o ON o.check_ = c.id JOIN subject s ON s.id = o.subject
WHERE o.stands = {PASSING} AND o.measured < (SELECT max(at) FROM told) - c.fresh_hours * 3600 GROUP BY s.holder
"""
_ABNORMAL = f"""
SELECT s.holder, o.subject, o.check_,
  c.name, s.name, o.stands, r.text, coalesce(o.known, ''), o.measured, t.run, c.fault
FROM state o JOIN subject s ON s.id = o.subject JOIN check_ c ON c.id = o.check_ JOIN told t ON t.n = o.run
JOIN text r ON r.id = o.reason
WHERE o.stands NOT IN ({PASSING}, {ON_TRIAL_PASSING}) ORDER BY s.holder, c.name, s.name
"""
_WORST_FIRST = (FAILING, UNKNOWN, PASSING, SKIPPED)
_IN_A_RUN = f"""
SELECT s.name, s.node, o.verdict, NOT ({deciding_condition("o")}), max(d.at)
FROM outcome o JOIN subject s ON s.id = o.subject LEFT JOIN document d ON d.id = o.document GROUP BY 1, 2, 3, 4
"""
_Key = tuple[int, int]
"""Numbers of subject and check."""


class LatestOutcomes:
    """The latest outcome of every check and subject. `unread` gets a message on each run's file that is damaged."""

    def __init__(self, ledger: Ledger, reports: Path, fresh_hours: Mapping[str, float]) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.executescript(_TABLES)
        self.connection.execute("BEGIN")  # it never ends: a transaction for each row would double the time
        self.unread: list[str] = []
        self._reports = reports
        self._details = dict[_Key, tuple[tuple[Measurement, ...], tuple[FailureArtefact, ...]]]()
        self._read_ledger(ledger, fresh_hours)
        self._ids = {
            table: dict(self.connection.execute(f"SELECT name, id FROM {table}")) for table in ("subject", "check_")
        }
        read = "SELECT n, run FROM told WHERE n IN (SELECT run FROM state)"
        for number, run in self.connection.execute(read).fetchall():
            self._read_run(number, run)
        self.connection.execute(_INDEX)

    def __enter__(self) -> LatestOutcomes:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def _read_ledger(self, ledger: Ledger, fresh_hours: Mapping[str, float]) -> None:
        execute, executemany = self.connection.execute, self.connection.executemany
        for seq, run, at, commit, dirty in ledger.run_marks():
            spec = f"{commit[:12] or 'no commit'}{'+changes' if dirty else ''}"
            execute("INSERT INTO told VALUES (?, ?, ?, ?)", (seq, run, datetime.fromisoformat(at).timestamp(), spec))
        checks, nodes = dict[int, tuple[int, int]](), dict[int, int]()

        def split(rows: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
            for node, fault, phases, *state in rows:
                nodes[state[0]], checks[state[1]] = node, (fault, phases)
                yield state

        executemany("INSERT INTO state VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)", split(ledger.newest_rows()))
        numbers = {number for (number,) in execute("SELECT DISTINCT reason FROM state")}
        texts = ledger.read_texts({*checks, *chain(*checks.values()), *nodes, *nodes.values(), *numbers})
        executemany("INSERT INTO text VALUES (?, ?)", ((number, texts[number]) for number in numbers))
        for number, (fault, phases) in sorted(checks.items()):
            name = texts[number]
            named = (number, name, suite_area(name), texts[fault], texts[phases], fresh_hours.get(name))
            execute("INSERT INTO check_ VALUES (?, ?, ?, ?, ?, ?)", named)
        for number, node in nodes.items():
            name = texts[number]
            place = (number, name, name.partition("/")[0], find_holder(name, texts[node]))
            execute("INSERT INTO subject VALUES (?, ?, ?, ?)", place)

    def _read_run(self, number: int, name: str) -> None:
        """Read what a run's file knows of outcomes that are the newest."""
        run = self.open_run(name)
        if run is None:
            return
        with self._note_damage(), run as stored:
            for outcome in stored.outcomes(verdicts=["fail", "error", "skip"]):
                key = self._find_key(outcome.check, outcome.subject)
                if key is None:
                    continue
                excused = self.connection.execute(_EXCUSE, (find_status(outcome), outcome.known, *key, number))
                if excused.rowcount and (outcome.measurements or outcome.artefacts):
                    self._details[key] = outcome.measurements, outcome.artefacts
            for check, subject in stored.connection.execute(_ON_TRIAL):
                if key := self._find_key(check, subject):
                    self.connection.execute(_EXCUSE, (ON_TRIAL_PASSING, None, *key, number))

    def open_run(self, name: str) -> StoredRun | None:
        """Return a run's file, None where it is gone or damaged."""
        path = self._reports / "runs" / name.partition("+")[0] / RUN_FILE  # what was resumed is in the same file
        with self._note_damage():
            return StoredRun.open(path) if path.exists() else None
        return None

    @contextmanager
    def _note_damage(self) -> Iterator[None]:
        try:
            yield
        except (AssayError, ValueError, TypeError, KeyError) as error:
            self.unread += [] if str(error) in self.unread else [str(error)]

    def _find_key(self, check: str, subject: str) -> _Key | None:
        """Return the numbers of an outcome, None where none of that check or subject is a newest one."""
        subjects, checks = self._ids["subject"], self._ids["check_"]
        return (subjects[subject], checks[check]) if subject in subjects and check in checks else None

    def read_statuses(self, outcomes: Collection[tuple[str, str]], until: float) -> dict[tuple[str, str], int]:
        """Return what these checks and subjects stood at, at a time (Unix seconds), by the runs of the 30 days before.

        Outcomes of which no such run has a file are left out.
        """
        left, statuses = {*outcomes}, dict[tuple[str, str], int]()
        query = "SELECT run FROM told WHERE at <= ? AND at > ? ORDER BY at DESC, run DESC"
        for (name,) in self.connection.execute(query, (until, until - MAX_CHANGE_AGE_S)).fetchall():
            run = self.open_run(name) if left else None
            if run is None:
                continue
            checks, subjects = ({*names} for names in zip(*left, strict=True))
            with self._note_damage(), run as stored:
                for outcome in stored.outcomes(checks=checks, subjects=subjects):
                    if (key := (outcome.check, outcome.subject)) in left:
                        statuses[key] = find_status(outcome)
            left -= statuses.keys()
        return statuses

    def read_run_statuses(self, name: str) -> dict[str, tuple[int, float]] | None:
        """Return how each node, rack and fabric stood in one run, and when it was measured (Unix seconds).

        Excused outcomes count for nothing. None if the run's file is gone or damaged.
        """
        run, statuses = self.open_run(name), dict[str, tuple[int, float]]()
        if run is None:
            return None
        with self._note_damage(), run as stored:
            for subject, node, verdict, is_excused, measured_at in stored.connection.execute(_IN_A_RUN):
                holder, at = (
                    find_holder(subject, node),
                    datetime.fromisoformat(measured_at or stored.run.at).timestamp(),
                )
                before, last_at = statuses.get(holder, (SKIPPED, at))
                worst = min(before, SKIPPED if is_excused else verdict, key=_WORST_FIRST.index)
                statuses[holder] = worst, max(last_at, at)
            return statuses
        return None

    def list_reported_runs(self) -> list[ReportedRun]:
        """Return the recorded runs, oldest first."""
        return [ReportedRun(*row) for row in self.connection.execute("SELECT n, run, at, spec FROM told ORDER BY run")]

    def delete_undeclared(self, checks: Collection[str], holders: Collection[str]) -> None:
        """Delete outcomes of checks, nodes, racks and fabrics that are no longer declared."""
        for table, name, declared in (("check_", "name", checks), ("subject", "holder", holders)):
            rows = self.connection.execute(f"SELECT id, {name} FROM {table}")
            gone = ", ".join(str(key) for key, value in rows if value not in declared)
            self.connection.execute(f"DELETE FROM state WHERE {table} IN ({gone})")
            self.connection.execute(f"DELETE FROM {table} WHERE id IN ({gone})")

    def read_holders(self) -> Iterator[HolderStatus]:
        """Yield the status of every node, rack and fabric, by name."""
        abnormal = groupby(self.connection.execute(_ABNORMAL), itemgetter(0))
        next_abnormal = next(abnormal, None)
        runs = {run.n: run.run for run in self.list_reported_runs()}
        phases_of, stale = self._phases_by_area(), dict(self.connection.execute(_STALE))
        shapes: dict[tuple[tuple[str, int, int], ...], StatusShape] = {}
        self.connection.execute(_HOLDERS)
        for name, group in groupby(self.connection.execute("SELECT * FROM holder_status"), itemgetter(0)):
            rows = list(group)
            key = tuple([row[2:5] for row in rows])
            if (shape := shapes.get(key)) is None:
                if len(shapes) == MOST_SHAPES:
                    shapes.clear()
                shape = shapes[key] = _make_shape(key, phases_of)
            measured, newest_run = max([row[6] for row in rows]), runs[max([row[7] for row in rows])]
            micros = tuple(sum(row[5] for row in of_area) for _, of_area in groupby(rows, itemgetter(2)))
            holder = HolderStatus(name, rows[0][1], measured, newest_run, shape, micros, stale=stale.get(name, 0))
            if next_abnormal and next_abnormal[0] == name:
                for _, subject, check, *words in next_abnormal[1]:
                    outcome, details = AbnormalOutcome(*words), self._details.get((subject, check))
                    if details:
                        outcome = replace(outcome, measurements=details[0], artefacts=details[1])
                    holder.abnormal.append(outcome)
                next_abnormal = next(abnormal, None)
            yield holder

    def _phases_by_area(self) -> dict[str, tuple[str, ...]]:
        phases_of: dict[str, dict[str, None]] = {}
        for area, phases in self.connection.execute("SELECT area, phases FROM check_ ORDER BY id"):
            phases_of.setdefault(area, {}).update(dict.fromkeys(json.loads(phases)))
        return {area: tuple(phases) for area, phases in phases_of.items()}


def _make_shape(rows: Sequence[tuple[str, int, int]], phases_of: Mapping[str, Iterable[str]]) -> StatusShape:
    by_area = groupby(rows, itemgetter(0))
    areas = tuple(AreaCounts(area, tuple(row[1:] for row in of_area)) for area, of_area in by_area)
    totals = Counter[int]()
    for _, status, count in rows:
        totals[status] += count
    phases = dict.fromkeys(phase for counts in areas for phase in phases_of[counts.area])
    return StatusShape(areas, totals, tuple(phases))
