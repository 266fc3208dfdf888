"""Finds runs, and reads a run's file: what was asked, and the outcomes one after the other, never all in memory.

Outcomes come in the order of subject and check. A damaged file is told by its pages, and by the values that are read by
their form.
"""

from __future__ import annotations

import json
import math
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from assay.ledger.runs.schema import RUN_FILE_VERSION, SHARED_TABLES, deciding_condition
from assay.model.errors import AssayError
from assay.model.evidence import UNKNOWN_BASIS, EvidenceBasis
from assay.model.outcome import VERDICTS, FailureArtefact, Measurement, Outcome, SuiteRun

T = TypeVar("T")
OutcomeKey = tuple[int, int]
"""Numbers of subject and check."""
StoredRow = tuple[Any, ...]
_NO_DOCUMENT = ("", "", UNKNOWN_BASIS)
RECOVERY_ERRORS = ("SQLITE_READONLY_ROLLBACK", "SQLITE_READONLY_RECOVERY")
ENDED_KEY = "ended"
ENDED_WHOLE = "whole"
ENDED_IN_PART = "in part"
"""Key and values in `about` of a run that has ended; in part where shards were lost or late."""
FRESH_HOURS_KEY = "fresh_hours"
"""Key in `about`: JSON, the greatest age of the evidence of a pass in hours, by check."""
INFLUENCES_KEY = "influences"
"""Key in `about`: JSON, the files outside the suites that may change verdicts, each with its sha256 and its hooks."""
RUN_FILE = "run.sqlite"


class RowsByOutcome:
    """Rows that belong to outcomes, read in step with these: both come in the same order.

    `key` is the outcome of the next row.
    """

    def __init__(self, rows: Iterator[StoredRow], make: Callable[[StoredRow], T]) -> None:
        self._rows, self._make = rows, make
        self._step()

    def of(self, key: OutcomeKey) -> tuple[Any, ...]:
        """Return the values of one outcome; to be called for each outcome in order, but for those before `key`."""
        values = []
        while self.key <= key:
            if self.key == key:
                values.append(self._make(self._next[2:]))
            self._step()
        return tuple(values)

    def _step(self) -> None:
        self._next = next(self._rows, ())
        self.key: tuple[float, ...] = self._next[:2] or (math.inf,)


class SharedValues:
    """The values that the outcomes of a run share, by number. A join for each outcome takes longer."""

    def __init__(self, connection: sqlite3.Connection, judged_by: Callable[[str, str], str]) -> None:
        self._judged_by, query = judged_by, connection.execute
        self._subjects = {row[0]: row[1:] for row in query("SELECT id, name, node FROM subject")}
        self._texts = dict(query("SELECT id, text FROM text"))
        self._checks = {
            number: (name, fault, tuple(json.loads(phases)), bool(active))
            for number, name, fault, phases, active in query("SELECT id, name, fault, phases, active FROM check_")
        }
        self._documents = {
            number: (digest, at, EvidenceBasis.decode(basis or ""))
            for number, digest, at, basis in query("SELECT id, digest, at, basis FROM document")
        }

    def make_outcome(
        self, row: StoredRow, measurements: tuple[Measurement, ...], artefacts: tuple[FailureArtefact, ...]
    ) -> Outcome:
        """Return the outcome of a row."""
        subject_number, check_number, verdict, reason, document, micros, known, observed = row
        subject, node = self._subjects[subject_number]
        check, fault, phases, active = self._checks[check_number]
        evidence, evidence_at, basis = self._documents[document] if document else _NO_DOCUMENT
        return Outcome(
            check=check,
            subject=subject,
            node=node,
            verdict=VERDICTS[verdict],
            reason=self._texts[reason] if reason else "",
            fault=fault,
            phases=phases,
            active=active,
            evidence=evidence,
            evidence_at=evidence_at,
            duration_s=micros / 1e6,
            measurements=measurements,
            known=self._texts[known] if known else "",
            observed=bool(observed),
            artefacts=artefacts,
            basis=basis,
            judged_by=self._judged_by(node, check),
        )


def damaged_run_error(path: Path, problem: object) -> AssayError:
    """Return the error for the file of a run that cannot be read to its end."""
    fix = "restore it from a backup, or move its folder away; its outcomes are in the ledger and in the history"
    return AssayError(f"this run is damaged: {problem}", where=str(path), fix=fix)


def find_damage(connection: sqlite3.Connection) -> str:
    """Return what is wrong with a run's file, "" for nothing. Raises what SQLite or JSON raise."""
    (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if answer != "ok":
        return str(answer).replace("\n", " ")
    query = f"SELECT count(*) FROM outcome WHERE verdict NOT IN ({', '.join(map(str, range(len(VERDICTS))))})"
    (strange,) = connection.execute(query).fetchone()
    for table, columns in SHARED_TABLES.items():
        for row in connection.execute(f"SELECT {', '.join(columns)} FROM {table}"):
            if table == "check_":
                json.loads(row[2])
            if table == "document":
                datetime.fromisoformat(row[1] or "2000-01-01")
    return f"{strange} outcomes have no verdict" if strange else ""


_OUTCOMES = """
SELECT o.subject, o.check_, o.verdict, o.reason, o.document, o.micros, o.known, o.observed FROM outcome o
"""
_MEASUREMENTS = """
SELECT o.subject, o.check_, g.name, o.value, g.unit, g.at_least, g.at_most, g.source
FROM measurement o JOIN gauge g ON g.id = o.gauge
"""
_ARTEFACTS = "SELECT o.subject, o.check_, o.name, o.digest, o.bytes FROM artefact o"
_FILTERS = {
    "verdicts": "(o.subject, o.check_) IN (SELECT subject, check_ FROM outcome WHERE verdict IN ({}))",
    "nodes": "o.subject IN (SELECT id FROM subject WHERE node IN ({}))",
    "checks": "o.check_ IN (SELECT id FROM check_ WHERE name IN ({}))",
    "subjects": "o.subject IN (SELECT id FROM subject WHERE name IN ({}))",
}
_EACH = "SELECT value FROM json_each(?)"


class StoredRun:
    """A stored run. `connection` is for further queries; `ledger/runs/schema.py` has the tables."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self.connection = path, connection

    @classmethod
    def open(cls, path: Path) -> StoredRun:
        """Open a run's file for reading. Raises AssayError for any other file."""
        try:
            connection, version = _open_readable(path)
        except sqlite3.Error as error:
            raise AssayError(f"is no run that can be read: {error}", where=str(path)) from None
        if version != RUN_FILE_VERSION:
            fix = "read it with the assay that wrote it" if version else "name a run.sqlite below reports/runs"
            raise AssayError(f"is no run of version {RUN_FILE_VERSION}", where=str(path), fix=fix)
        return cls(path, connection)

    @classmethod
    def open_whole(cls, path: Path) -> StoredRun:
        """Open a run's file whose pages and values were looked through. Raises AssayError for a damaged one."""
        stored = cls.open(path)
        try:
            problem = find_damage(stored.connection)
        except (sqlite3.Error, ValueError, TypeError, KeyError) as error:
            problem = str(error) or type(error).__name__
        if problem:
            stored.close()
            raise damaged_run_error(path, problem)
        return stored

    def __enter__(self) -> StoredRun:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: object) -> None:
        """Close the file. Raises AssayError where SQLite found that it is damaged."""
        self.close()
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.ProgrammingError):
            raise damaged_run_error(self.path, str(error)) from error

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    @cached_property
    def about(self) -> dict[str, str]:
        """Further facts of the run: program versions, selection, how it ended."""
        return dict(self.connection.execute("SELECT key, value FROM about"))

    @cached_property
    def run(self) -> SuiteRun:
        """Identity of the run: time, user, nodes, phases, specs."""
        plain: dict[str, Any] = json.loads(self.about["run"])
        return SuiteRun(**plain | {"phases": tuple(plain["phases"]), "nodes": tuple(plain["nodes"])})

    @property
    def has_ended(self) -> bool:
        """Whether the run was judged to its end, completely or in part."""
        return ENDED_KEY in self.about

    @property
    def is_complete(self) -> bool:
        """Whether every shard of the run was judged to its end."""
        return self.about.get(ENDED_KEY) == ENDED_WHOLE

    @property
    def influences(self) -> Mapping[str, str]:
        """The files outside the suites that may have changed what was judged: pytest's settings, conftests, plugins.

        Each with the names of its hooks, or `settings`.
        """
        known: dict[str, str] = json.loads(self.about.get(INFLUENCES_KEY, "{}"))
        return {name: about.partition(" ")[2] for name, about in known.items()}

    def count_left_out(self) -> int:
        """Return how many declared outcomes the user's options left out."""
        count: int = self.connection.execute("SELECT count(*) FROM left_out").fetchone()[0]
        return count

    def counts(self) -> Counter[str]:
        """Return how many outcomes of each verdict there are."""
        rows = self.connection.execute("SELECT verdict, count(*) FROM outcome GROUP BY verdict")
        return Counter({VERDICTS[code]: count for code, count in rows})

    def count_deciding(self) -> int:
        """Return how many outcomes count against their subjects, as `Outcome.counts_against_subject`."""
        bad = f"verdict IN ({VERDICTS.index('fail')}, {VERDICTS.index('error')})"
        query = f"SELECT count(*) FROM outcome WHERE {bad} AND {deciding_condition('outcome')}"
        count: int = self.connection.execute(query).fetchone()[0]
        return count

    def outcomes(
        self,
        *,
        verdicts: Collection[str] = (),
        nodes: Collection[str] = (),
        checks: Collection[str] = (),
        subjects: Collection[str] = (),
        judged_by: Callable[[str, str], str] = lambda _node, _check: "",
    ) -> Iterator[Outcome]:
        """Yield the outcomes of these verdicts, nodes, checks and subjects (none: of all), by subject and check.

        `judged_by` says for node and check what each was judged by; the file does not hold that.
        """
        selected: dict[str, Collection[Any]] = {
            "verdicts": [VERDICTS.index(verdict) for verdict in VERDICTS if verdict in verdicts],
            "nodes": nodes,
            "checks": checks,
            "subjects": subjects,
        }
        filters = {name: json.dumps(list(values)) for name, values in selected.items() if values}
        where = " AND ".join(_FILTERS[name].format(_EACH) for name in filters)
        tail = f"{f' WHERE {where}' if where else ''} ORDER BY o.subject, o.check_"
        values = list(filters.values())
        query = self.connection.execute
        measurements = RowsByOutcome(query(f"{_MEASUREMENTS}{tail}, o.n", values), lambda row: Measurement(*row))
        artefacts = RowsByOutcome(query(f"{_ARTEFACTS}{tail}, o.name", values), lambda row: FailureArtefact(*row))
        rows = query(_OUTCOMES + tail, values)  # before the shared values: another process may add to both
        shared = SharedValues(self.connection, judged_by)
        for row in rows:
            key = row[:2]  # most outcomes have neither, so that a comparison does
            measured = measurements.of(key) if measurements.key <= key else ()
            yield shared.make_outcome(row, measured, artefacts.of(key) if artefacts.key <= key else ())

    def documents(self) -> dict[str, tuple[str, str]]:
        """Return digest and time of each judged document, by name."""
        rows = self.connection.execute("SELECT name, digest, at FROM document WHERE name != ''")
        return {name: (digest, at) for name, digest, at in rows}

    def left_out(self) -> set[tuple[str, str]]:
        """Return check and subject of everything that the user's options left out."""
        return set(self.connection.execute("SELECT check_, subject FROM left_out"))

    def judged_subjects(self) -> dict[str, set[str]]:
        """Return the ids of the judged subjects, by check. Each id is in memory once."""
        subjects = dict(self.connection.execute("SELECT id, name FROM subject"))
        by_number: dict[int, set[str]] = {}
        for check, subject in self.connection.execute("SELECT check_, subject FROM outcome"):
            by_number.setdefault(check, set()).add(subjects[subject])
        judged: dict[str, set[str]] = {}
        for number, check in self.connection.execute("SELECT id, name FROM check_"):
            judged.setdefault(check, set()).update(by_number.get(number, ()))
        return {check: names for check, names in judged.items() if names}

    def left_out_subjects(self) -> dict[str, set[str]]:
        """Return the ids of the subjects that the user's options left out, by check."""
        left_out: dict[str, set[str]] = {}
        for check, subject in self.left_out():
            left_out.setdefault(check, set()).add(subject)
        return left_out


def _open_readable(path: Path) -> tuple[sqlite3.Connection, int]:
    """Open a file for reading, and return its version. A write that a kill cut short is undone first."""
    try:
        return _connect_file(path, "ro")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorname not in RECOVERY_ERRORS:
            raise
        _connect_file(path, "rw")[0].close()
        return _connect_file(path, "ro")


def _connect_file(path: Path, mode: str) -> tuple[sqlite3.Connection, int]:
    connection = sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode={mode}", uri=True, timeout=60)
    return connection, connection.execute("PRAGMA user_version").fetchone()[0]


_LAST_NAME = re.compile(r"last(?:~(\d+))?")


def list_runs(reports: Path) -> list[Path]:
    """Return the file of every run in `reports`, oldest first, since a run's id starts with its time."""
    return sorted((reports / "runs").glob(f"*/{RUN_FILE}"))


def find_run(reports: Path, name: str) -> Path:
    """Return the file of a run, named by its id, the start of its id, `last`, or `last~1` for the one before.

    Raises AssayError where no run or more than one has that name.
    """
    runs = list_runs(reports)
    if not runs:
        raise AssayError(f"there is no run in {reports / 'runs'}", fix="run `assay validate` first")
    if last_name := _LAST_NAME.fullmatch(name):
        back = int(last_name[1] or 0)
        if back >= len(runs):
            fix = f"there are {len(runs)}; the oldest is last~{len(runs) - 1}"
            raise AssayError(f"there is no run {name}", fix=fix)
        return runs[-1 - back]
    by_id = {run.parent.name: run for run in runs}
    matching = [by_id[name]] if name in by_id else [run for key, run in by_id.items() if name and key.startswith(name)]
    if len(matching) > 1:
        raise AssayError(
            f"{len(matching)} runs begin with {name}", fix=f"give more of it: {matching[0].parent.name}, …"
        )
    if not matching:
        near = get_close_matches(name, by_id, n=2, cutoff=0.3) or [runs[-1].parent.name]
        fix = f"did you mean {' or '.join(near)}? `last` and `last~1` work too"
        raise AssayError(f"there is no run {name}", fix=fix)
    return matching[0]
