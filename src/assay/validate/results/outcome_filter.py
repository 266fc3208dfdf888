"""Filters the outcomes of a run by node, pool, rack, check, verdict and phase."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from assay.model.errors import AssayError
from assay.model.outcome import VERDICTS, CheckVerdict
from assay.model.text.lists import suggest_names


@dataclass(frozen=True)
class OutcomeFilter:
    """Values to match; an outcome must match one value of each field that is not empty. `racks` are nodes by rack.

    `checks` are globs of a check's id, module or function name.
    """

    nodes: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    racks: Mapping[str, frozenset[str]] = field(default_factory=dict)
    checks: tuple[str, ...] = ()
    verdicts: tuple[CheckVerdict, ...] = ()
    phases: tuple[str, ...] = ()

    @property
    def all_subjects(self) -> bool:
        """Whether the filter selects every subject."""
        return not (self.nodes or self.pools or self.racks)

    @property
    def all_checks(self) -> bool:
        """Whether the filter selects every check."""
        return not (self.checks or self.phases)

    def matches_subject(self, name: str, node: str) -> bool:
        """Return whether the filter selects a subject, given its id and node."""
        scope, _, rest = name.partition("/")
        return (
            (not self.nodes or node in self.nodes)
            and (not self.pools or scope in self.pools)
            and (not self.racks or any(node in nodes or rest == f"rack-{rack}" for rack, nodes in self.racks.items()))
        )

    def matches_check(self, name: str, phases: Iterable[str]) -> bool:
        """Return whether the filter selects a check, given its id and phases."""
        if self.phases and set(self.phases).isdisjoint(phases):
            return False
        return not self.checks or any(_matches_glob(glob, list_check_spellings(name)) for glob in self.checks)


NO_FILTER = OutcomeFilter()


def list_check_spellings(check: str) -> tuple[str, ...]:
    """Return the names by which a check can be selected: its id, module and function, also without prefixes."""
    module, _, function = check.partition("::")
    short_id, short_module = check.removeprefix("suites/"), module.removeprefix("suites/")
    return check, short_id, module, short_module, function, function.removeprefix("test_")


@dataclass(frozen=True)
class FilterSql:
    """A filter as ids of one run's file, JSON lists for SQL; None selects everything."""

    verdicts: str | None = None
    subjects: str | None = None
    checks: str | None = None

    def where(self, table: str = "o", *conditions: str) -> tuple[str, list[str]]:
        """Return a WHERE clause over rows of `outcome` called `table`, with further conditions, and its values."""
        columns = {"verdict": self.verdicts, "subject": self.subjects, "check_": self.checks}
        restricted = {column: values for column, values in columns.items() if values is not None}
        parts = [f"{table}.{column} IN (SELECT value FROM json_each(?))" for column in restricted]
        clause = " AND ".join([*parts, *conditions])
        return f" WHERE {clause}" if clause else "", list(restricted.values())


def compile_filter(connection: sqlite3.Connection, outcome_filter: OutcomeFilter, schema: str = "main") -> FilterSql:
    """Return the filter as ids of the run that is attached as `schema`."""
    subjects, checks = None, None
    if not outcome_filter.all_subjects:
        rows = connection.execute(f"SELECT id, name, node FROM {schema}.subject")
        subjects = json.dumps([key for key, name, node in rows if outcome_filter.matches_subject(name, node)])
    if not outcome_filter.all_checks:
        rows = connection.execute(f"SELECT id, name, phases FROM {schema}.check_")
        checks = json.dumps([key for key, name, text in rows if outcome_filter.matches_check(name, json.loads(text))])
    verdicts = [VERDICTS.index(verdict) for verdict in outcome_filter.verdicts]
    return FilterSql(json.dumps(verdicts) if verdicts else None, subjects, checks)


def refuse_unknown_names(connection: sqlite3.Connection, outcome_filter: OutcomeFilter) -> None:
    """Raise AssayError for a name in the filter that the run does not have, with names that may be meant."""
    subjects = connection.execute("SELECT name, node FROM subject").fetchall()
    checks = [name for (name,) in connection.execute("SELECT DISTINCT name FROM check_")]
    functions = [name.rpartition("::")[2] for name in checks]
    names = [name for name, _ in subjects]
    _refuse(outcome_filter.nodes, {node for _, node in subjects if node}, "node", str.__eq__)
    _refuse(outcome_filter.pools, {name.partition("/")[0] for name in names}, "pool", str.__eq__)
    _refuse(outcome_filter.checks, checks, "check", _is_check, functions)


def _is_check(glob: str, name: str) -> bool:
    return _matches_glob(glob, list_check_spellings(name))


def _refuse(
    names: Iterable[str],
    known: Iterable[str],
    kind: str,
    matches: Callable[[str, str], bool],
    suggestions: Iterable[str] | None = None,
) -> None:
    existing = sorted(known)
    for name in names:
        if not any(matches(name, other) for other in existing):
            others = f"the run has, among others, {', '.join(existing[:3])}"
            is_part = any(matches(f"*{name}*", other) for other in existing)
            fix = suggest_names(name, list(suggestions or existing), f"did you mean '*{name}*'?" if is_part else others)
            raise AssayError(f"the run judged no {kind} {name}", fix=fix)


def _matches_glob(glob: str, names: Iterable[str]) -> bool:
    return any(fnmatchcase(name, glob) for name in names)
