"""Pairs the outcomes of two runs in SQL, by check and subject, on disk where there are many. Finds runs to compare.

`compare_exactly` says whether two runs are equal in everything that judging decides: all of an outcome but its
duration. Of the runs before a run, one compares best with it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from assay.ledger.runs.reader import StoredRun
from assay.model.errors import AssayError
from assay.model.outcome import SuiteRun
from assay.validate.results.outcome_filter import NO_FILTER, OutcomeFilter

PAIR_SIDES = ("new", "old")
PAIRED_ROWS = """
{0}.outcome {1} CROSS JOIN subject_of s ON s.{0} = {1}.subject CROSS JOIN check_of c ON c.{0} = {1}.check_
CROSS JOIN {2}.outcome {3} ON {3}.subject = s.{2} AND {3}.check_ = c.{2}
"""
PAIRED_FROM_NEW = PAIRED_ROWS.format("new", "n", "old", "o")
"""Outcomes of both runs, in the order of the new run's rows (`n`); `o` are the old run's."""
PAIRED_FROM_OLD = PAIRED_ROWS.format("old", "o", "new", "n")
"""The same, in the order of the old run's rows."""
MAX_EXAMPLES = 5
MAX_LOOK_BACK = 50


class PairedRuns:
    """Two runs on one connection, attached as `new` and `old`.

    The tables `subject_new`, `subject_old`, `check_new` and `check_old` hold what the filter selects of each run, and
    `asked`: whether the other run should have it too. `subject_of` and `check_of` pair ids (new, old) of equal names.
    """

    def __init__(self, old: Path, new: Path, outcome_filter: OutcomeFilter) -> None:
        self.runs: dict[str, SuiteRun] = {}
        self.ended: dict[str, bool] = {}
        self.connection = sqlite3.connect("", isolation_level=None, uri=True)  # "": a temporary file
        for side, path in zip(PAIR_SIDES, (new, old), strict=True):
            with StoredRun.open_whole(path) as stored:
                self.runs[side], self.ended[side] = stored.run, stored.has_ended
            self.connection.execute(f"ATTACH ? AS {side}", (f"file:{quote(str(path.resolve()))}?mode=ro",))
        for side, other in zip(PAIR_SIDES, reversed(PAIR_SIDES), strict=True):
            self._add_subjects(side, outcome_filter, other)
            self._add_checks(side, outcome_filter, self.runs[other])
        for table in ("subject", "check"):
            self._pair(table)

    def close(self) -> None:
        """Close both files."""
        self.connection.close()

    def query_number(self, sql: str) -> int:
        """Return the only value of a query."""
        number: int = self.connection.execute(sql).fetchone()[0]
        return number

    def query_column(self, sql: str) -> tuple[str, ...]:
        """Return the only column of a query."""
        return tuple(row[0] for row in self.connection.execute(sql))

    def _add_subjects(self, side: str, outcome_filter: OutcomeFilter, other: str) -> None:
        # what a run that has not ended lacks is not missing; racks and fabrics are expected where all nodes are
        ended, nodes = self.ended[other], frozenset(self.runs[other].nodes)
        has_all_nodes = ended and nodes.issuperset(self.runs[side].nodes)
        rows = self.connection.execute(f"SELECT id, name, node FROM {side}.subject")
        selected = (row for row in rows if outcome_filter.matches_subject(*row[1:]))
        with_asked = ((*row, ended and row[2] in nodes if row[2] else has_all_nodes) for row in selected)
        self._add_table(f"subject_{side} (id INTEGER PRIMARY KEY, name TEXT, node TEXT, asked INTEGER)", with_asked)

    def _add_checks(self, side: str, outcome_filter: OutcomeFilter, other: SuiteRun) -> None:
        rows = self.connection.execute(f"SELECT id, name, phases FROM {side}.check_")
        checks = ((key, name, json.loads(phases)) for key, name, phases in rows)
        with_asked = (
            (key, name, not other.phases or not set(other.phases).isdisjoint(phases))
            for key, name, phases in checks
            if outcome_filter.matches_check(name, phases)
        )
        self._add_table(f"check_{side} (id INTEGER PRIMARY KEY, name TEXT, asked INTEGER)", with_asked)

    def _pair(self, table: str) -> None:
        pairs = f"SELECT n.id, o.id FROM {table}_new n JOIN {table}_old o USING (name)"
        self.connection.execute(f"CREATE TABLE {table}_of (new INTEGER, old INTEGER, PRIMARY KEY (new, old))")
        self.connection.execute(f"INSERT INTO {table}_of {pairs}")
        self.connection.execute(f"CREATE INDEX {table}_back ON {table}_of (old, new)")

    def _add_table(self, definition: str, rows: Iterable[tuple[object, ...]]) -> None:
        self.connection.execute(f"CREATE TABLE {definition}")
        self.connection.execute("BEGIN")
        places = ", ".join("?" * (definition.count(",") + 1))
        self.connection.executemany(f"INSERT INTO {definition.split(maxsplit=1)[0]} VALUES ({places})", rows)
        self.connection.execute("COMMIT")


@dataclass(frozen=True)
class RunEquality:
    """The number of outcomes that both runs have, that only one has, that differ, and that differ in the verdict."""

    both: int
    alone: int
    differing: int
    verdicts: int
    examples: tuple[tuple[str, str], ...]

    @property
    def identical(self) -> bool:
        """Whether no outcome differs."""
        return not self.differing and not self.alone

    @property
    def agrees(self) -> bool:
        """Whether all verdicts are equal."""
        return not self.verdicts and not self.alone


def compare_exactly(old: Path, new: Path) -> RunEquality:
    """Compare two runs outcome by outcome, with measurements and artefacts. Raises AssayError for a damaged file."""
    sides = PairedRuns(old, new, NO_FILTER)
    try:
        both = sides.query_number(f"SELECT count(*) FROM {PAIRED_FROM_NEW}")
        alone = sum(sides.query_number(f"SELECT count(*) FROM {side}.outcome") - both for side in ("old", "new"))
        differing = 0
        verdicts = 0
        examples: list[tuple[str, str]] = []
        for check, subject, verdict in sides.connection.execute(_DIFFERING):
            differing += 1
            verdicts += verdict
            if len(examples) < MAX_EXAMPLES:
                examples.append((check, subject))
        return RunEquality(both, alone, differing, verdicts, tuple(examples))
    finally:
        sides.close()


_DIFFERING_ROWS = """
(SELECT count(*) FROM new.{0} m WHERE m.subject = n.subject AND m.check_ = n.check_)
  != (SELECT count(*) FROM old.{0} m WHERE m.subject = o.subject AND m.check_ = o.check_)
OR EXISTS (SELECT 1 FROM new.{0} m {1} WHERE m.subject = n.subject AND m.check_ = n.check_ AND NOT EXISTS (
  SELECT 1 FROM old.{0} p {2} WHERE p.subject = o.subject AND p.check_ = o.check_ AND {3}))
"""
_GAUGE = " AND ".join(f"g.{column} IS h.{column}" for column in ("name", "unit", "at_least", "at_most", "source"))
_MEASUREMENTS_DIFFER = _DIFFERING_ROWS.format(
    "measurement",
    "JOIN new.gauge g ON g.id = m.gauge",
    "JOIN old.gauge h ON h.id = p.gauge",
    f"p.n = m.n AND p.value = m.value AND {_GAUGE}",
)
_ARTEFACTS_DIFFER = _DIFFERING_ROWS.format(
    "artefact", "", "", "p.name = m.name AND p.digest = m.digest AND p.bytes = m.bytes"
)
_FIELDS_DIFFER = " OR ".join(
    [
        *(f"c1.{column} != c2.{column}" for column in ("fault", "phases", "active")),
        "s1.node != s2.node",
        *(f"d1.{column} IS NOT d2.{column}" for column in ("digest", "at")),
        "r1.text IS NOT r2.text",
        "k1.text IS NOT k2.text",
    ]
)
_DIFFERING = f"""
SELECT c1.name, s1.name, n.verdict != o.verdict FROM {PAIRED_FROM_NEW}
JOIN new.check_ c1 ON c1.id = n.check_ JOIN old.check_ c2 ON c2.id = o.check_
JOIN new.subject s1 ON s1.id = n.subject JOIN old.subject s2 ON s2.id = o.subject
LEFT JOIN new.document d1 ON d1.id = n.document LEFT JOIN old.document d2 ON d2.id = o.document
LEFT JOIN new.text r1 ON r1.id = n.reason LEFT JOIN old.text r2 ON r2.id = o.reason
LEFT JOIN new.text k1 ON k1.id = n.known LEFT JOIN old.text k2 ON k2.id = o.known
WHERE n.verdict != o.verdict OR n.observed IS NOT o.observed
  OR {_FIELDS_DIFFER} OR {_MEASUREMENTS_DIFFER} OR {_ARTEFACTS_DIFFER}
"""


def list_earlier_runs(runs: Sequence[Path], run: Path) -> list[Path]:
    """Return the runs before `run`, oldest first."""
    return [other for other in runs if other.parent.name < run.parent.name]


def find_comparable_run(
    earlier: Sequence[Path], run: Path, skipped: Callable[[AssayError], None] = lambda _: None
) -> Path:
    """Return the newest earlier run that has ended, with the same phases and at least the same nodes as `run`.

    Where there is none, return the newest earlier run. `skipped` receives the error of each damaged run. Raises
    AssayError where no run is earlier, or none can be read.
    """
    if not earlier:
        fix = "`assay results --list` shows the runs; `--against` names one"
        raise AssayError(f"there is no run before {run.parent.name}", fix=fix)
    with StoredRun.open_whole(run) as stored:
        phases, nodes = set(stored.run.phases), set(stored.run.nodes)
    readable: list[Path] = []
    for path in reversed(earlier[-MAX_LOOK_BACK:]):
        try:
            with StoredRun.open_whole(path) as stored:
                readable.append(path)
                if stored.has_ended and set(stored.run.phases) == phases and set(stored.run.nodes) >= nodes:
                    return path
        except AssayError as error:
            skipped(error)
    if not readable:
        raise AssayError(f"no run before {run.parent.name} can be read", fix="`--against` names another one")
    return readable[0]
