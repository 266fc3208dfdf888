"""Reads a run's file: what was asked, and the outcomes one after the other, never all in memory."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from assay.ledger.runs.damaged_runs import damaged_run_error, find_damage
from assay.ledger.runs.outcome_rows import RowsByOutcome, SharedValues
from assay.ledger.runs.schema import OLDER_VERSIONS, RUN_FILE_VERSION, deciding_condition, view_as_present
from assay.model.errors import AssayError
from assay.model.outcome import VERDICTS, FailureArtefact, Measurement, Outcome, SuiteRun

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
RECOVERY_ERRORS = ("SQLITE_READONLY_ROLLBACK", "SQLITE_READONLY_RECOVERY")
ENDED_KEY, ENDED_WHOLE, ENDED_IN_PART = "ended", "whole", "in part"
"""Key and values in `about` of a run that has ended; in part where shards were lost or late."""

FRESH_HOURS_KEY = "fresh_hours"
"""Key in `about`: JSON, the greatest age of the evidence of a pass in hours, by check."""
INFLUENCES_KEY = "influences"
"""Key in `about`: JSON, the files outside the suites that may change verdicts, each with its sha256 and its hooks."""


class StoredRun:
    """A stored run. `connection` is for further queries; `results.store.schema` has the tables."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self.connection = path, connection

    @classmethod
    def open(cls, path: Path) -> StoredRun:
        """Open a run's file for reading, also an older one. Raises AssayError for any other file."""
        try:
            connection, version = _open_readable(path)
            if version in OLDER_VERSIONS:
                view_as_present(connection, version)
                version = RUN_FILE_VERSION
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
        found: dict[str, set[str]] = {}
        for number, check in self.connection.execute("SELECT id, name FROM check_"):
            found.setdefault(check, set()).update(by_number.get(number, ()))
        return {check: names for check, names in found.items() if names}

    def left_out_subjects(self) -> dict[str, set[str]]:
        """Return the ids of the subjects that the user's options left out, by check."""
        found: dict[str, set[str]] = {}
        for check, subject in self.left_out():
            found.setdefault(check, set()).add(subject)
        return found


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
