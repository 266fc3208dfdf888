"""Which outcomes of a run a person wants to see, by node, pool, rack, check, verdict, phase and subject."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase

from assay.model.errors import AssayError
from assay.model.outcome import CheckVerdict
from assay.results.store.schema import VERDICTS


@dataclass(frozen=True)
class OutcomeFilter:
    """What is asked for; of each kind one of the named ones, none: all. `racks` holds the nodes of each.

    `checks` and `subjects` are globs: of a check's id or its function's name, of a subject's id or what follows the
    pool (`n0003/gpu*`).
    """

    nodes: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    racks: Mapping[str, frozenset[str]] = field(default_factory=dict)
    checks: tuple[str, ...] = ()
    verdicts: tuple[CheckVerdict, ...] = ()
    phases: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()

    @property
    def all_subjects(self) -> bool:
        """Whether no subject is left out."""
        return not (self.nodes or self.pools or self.racks or self.subjects)

    @property
    def all_checks(self) -> bool:
        """Whether no check is left out."""
        return not (self.checks or self.phases)

    def matches_subject(self, name: str, node: str) -> bool:
        """Whether a subject is wanted."""
        scope, _, rest = name.partition("/")
        return (
            (not self.nodes or node in self.nodes)
            and (not self.pools or scope in self.pools)
            and (not self.racks or self._in_rack(rest, node))
            and (not self.subjects or any(_matches_glob(glob, (name, rest)) for glob in self.subjects))
        )

    def matches_check(self, name: str, phases: Iterable[str]) -> bool:
        """Whether a check is wanted."""
        of_phase = not self.phases or not set(self.phases).isdisjoint(phases)
        return of_phase and (
            not self.checks or any(_matches_glob(glob, list_check_spellings(name)) for glob in self.checks)
        )

    def _in_rack(self, rest: str, node: str) -> bool:
        return any(node in nodes or rest == f"rack-{rack}" for rack, nodes in self.racks.items())


NO_FILTER = OutcomeFilter()


def list_check_spellings(check: str) -> tuple[str, ...]:
    """Return what people write for a check: its id, with or without `suites/`, its module, its function's name."""
    module, _, function = check.partition("::")
    short = check.removeprefix("suites/")
    return check, short, module, module.removeprefix("suites/"), function, function.removeprefix("test_")


@dataclass(frozen=True)
class FilterSql:
    """What is wanted, as numbers of one run's file, in JSON for SQL; None for all."""

    verdicts: str | None = None
    subjects: str | None = None
    checks: str | None = None

    def where(self, table: str = "o", *more: str) -> tuple[str, list[str]]:
        """Return a WHERE clause over rows of `outcome` called `table`, and its values."""
        given = {"verdict": self.verdicts, "subject": self.subjects, "check_": self.checks}
        kept = {column: values for column, values in given.items() if values is not None}
        parts = [f"{table}.{column} IN (SELECT value FROM json_each(?))" for column in kept]
        clause = " AND ".join([*parts, *more])
        return f" WHERE {clause}" if clause else "", list(kept.values())


def compile_filter(connection: sqlite3.Connection, wanted: OutcomeFilter, schema: str = "main") -> FilterSql:
    """Return what is wanted of the run that is attached as `schema`."""
    subjects, checks = None, None
    if not wanted.all_subjects:
        rows = connection.execute(f"SELECT id, name, node FROM {schema}.subject")
        subjects = json.dumps([number for number, name, node in rows if wanted.matches_subject(name, node)])
    if not wanted.all_checks:
        rows = connection.execute(f"SELECT id, name, phases FROM {schema}.check_")
        checks = json.dumps([number for number, name, phases in rows if wanted.matches_check(name, json.loads(phases))])
    verdicts = json.dumps([VERDICTS.index(verdict) for verdict in wanted.verdicts]) if wanted.verdicts else None
    return FilterSql(verdicts, subjects, checks)


def refuse_unknown_names(connection: sqlite3.Connection, wanted: OutcomeFilter) -> None:
    """Refuse names that the run does not have. Raises Trouble with what may have been meant."""
    subjects = connection.execute("SELECT name, node FROM subject").fetchall()
    checks = [name for (name,) in connection.execute("SELECT DISTINCT name FROM check_")]
    places = {name.partition("/")[0] for name, _ in subjects}
    _refuse(wanted.nodes, {node for _, node in subjects if node}, "node", str.__eq__)
    _refuse(wanted.pools, places, "pool", str.__eq__)
    functions = [name.rpartition("::")[2] for name in checks]
    _refuse(
        wanted.checks, checks, "check", lambda glob, name: _matches_glob(glob, list_check_spellings(name)), functions
    )
    names = [name for name, _ in subjects]
    _refuse(wanted.subjects, names, "subject", lambda glob, name: _matches_glob(glob, (name, name.partition("/")[2])))


def _refuse(
    given: Iterable[str],
    known: Iterable[str],
    what: str,
    meant: Callable[[str, str], bool],
    near: Iterable[str] | None = None,
) -> None:
    there = sorted(known)
    for name in given:
        if not any(meant(name, one) for one in there):
            close = get_close_matches(name, near or there, n=3)
            close = close or [f"'*{name}*'"] * any(meant(f"*{name}*", one) for one in there)
            fix = f"did you mean {' or '.join(close)}?" if close else f"it judged, among others, {', '.join(there[:3])}"
            raise AssayError(f"the run judged no {what} {name}", fix=fix)


def _matches_glob(glob: str, names: Iterable[str]) -> bool:
    return any(fnmatchcase(name, glob) for name in names)
