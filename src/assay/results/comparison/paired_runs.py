"""Two runs side by side: what each numbers in its own way is lined up by name, in SQL, on disk where it grows large.

Whether two runs came to the same in every byte that judging decides: all of an outcome but how long it took.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from assay.model.outcome import SuiteRun
from assay.results.outcome_filter import NO_FILTER, OutcomeFilter
from assay.results.store.reader import StoredRun

PAIR_SIDES = ("new", "old")
PAIRED_ROWS = """
{0}.outcome {1} CROSS JOIN subject_of s ON s.{0} = {1}.subject CROSS JOIN check_of c ON c.{0} = {1}.check_
CROSS JOIN {2}.outcome {3} ON {3}.subject = s.{2} AND {3}.check_ = c.{2}
"""
PAIRED_FROM_NEW = PAIRED_ROWS.format("new", "n", "old", "o")
"""What both runs judged, walked along the new one's rows (`n`); `o` are the old one's."""
PAIRED_FROM_OLD = PAIRED_ROWS.format("old", "o", "new", "n")
"""The same, walked along the old one's rows."""


class PairedRuns:
    """Two runs on one connection, attached as `new` and `old`.

    `subject_new`, `subject_old`, `check_new` and `check_old` hold what is wanted of each, and whether the other run
    was asked for it too; `subject_of` and `check_of` (new, old) say what has the same name.
    """

    def __init__(self, old: Path, new: Path, wanted: OutcomeFilter) -> None:
        self.runs: dict[str, SuiteRun] = {}
        self.ended: dict[str, bool] = {}
        self.connection = sqlite3.connect("", isolation_level=None, uri=True)  # "": on disk, and gone with us
        for side, path in zip(PAIR_SIDES, (new, old), strict=True):
            with StoredRun.open(path) as stored:
                self.runs[side], self.ended[side] = stored.run, "ended" in stored.about
            self.connection.execute(f"ATTACH ? AS {side}", (f"file:{quote(str(path.resolve()))}?mode=ro",))
        for side, other in zip(PAIR_SIDES, reversed(PAIR_SIDES), strict=True):
            self._subjects(side, wanted, other)
            self._checks(side, wanted, self.runs[other])
        for what in ("subject", "check"):
            self._pair(what)

    def close(self) -> None:
        """Let go of both."""
        self.connection.close()

    def query_number(self, question: str) -> int:
        """Return the one number that a question has for an answer."""
        found: int = self.connection.execute(question).fetchone()[0]
        return found

    def query_column(self, question: str) -> tuple[str, ...]:
        """Return the one column that a question has for an answer."""
        return tuple(row[0] for row in self.connection.execute(question))

    def _subjects(self, side: str, wanted: OutcomeFilter, other: str) -> None:
        ended, nodes = self.ended[other], frozenset(self.runs[other].nodes)  # what it has not come to is not missing
        whole = ended and nodes.issuperset(self.runs[side].nodes)  # then its racks and fabrics were asked for too
        rows = self.connection.execute(f"SELECT id, name, node FROM {side}.subject")
        kept = (
            (*row, ended and row[2] in nodes if row[2] else whole) for row in rows if wanted.matches_subject(*row[1:])
        )
        self._table(f"subject_{side} (id INTEGER PRIMARY KEY, name TEXT, node TEXT, asked INTEGER)", kept)

    def _checks(self, side: str, wanted: OutcomeFilter, other: SuiteRun) -> None:
        rows = self.connection.execute(f"SELECT id, name, phases FROM {side}.check_")
        read = ((number, name, json.loads(phases)) for number, name, phases in rows)
        kept = (
            (number, name, not other.phases or not set(other.phases).isdisjoint(phases))
            for number, name, phases in read
            if wanted.matches_check(name, phases)
        )
        self._table(f"check_{side} (id INTEGER PRIMARY KEY, name TEXT, asked INTEGER)", kept)

    def _pair(self, what: str) -> None:
        pairs = f"SELECT n.id, o.id FROM {what}_new n JOIN {what}_old o USING (name)"
        self.connection.execute(f"CREATE TABLE {what}_of (new INTEGER, old INTEGER, PRIMARY KEY (new, old))")
        self.connection.execute(f"INSERT INTO {what}_of {pairs}")
        self.connection.execute(f"CREATE INDEX {what}_back ON {what}_of (old, new)")

    def _table(self, shape: str, rows: Iterable[tuple[object, ...]]) -> None:
        self.connection.execute(f"CREATE TABLE {shape}")
        self.connection.execute("BEGIN")
        places = ", ".join("?" * (shape.count(",") + 1))
        self.connection.executemany(f"INSERT INTO {shape.split(maxsplit=1)[0]} VALUES ({places})", rows)
        self.connection.execute("COMMIT")


MAX_EXAMPLES = 5


@dataclass(frozen=True)
class RunEquality:
    """How many outcomes both runs have, and how many only one; how many of both differ, and differ in the verdict."""

    both: int
    alone: int
    differing: int
    verdicts: int
    examples: tuple[tuple[str, str], ...]

    @property
    def identical(self) -> bool:
        """Whether nothing differs."""
        return not self.differing and not self.alone

    @property
    def agrees(self) -> bool:
        """Whether all verdicts are the same."""
        return not self.verdicts and not self.alone


def compare_exactly(old: Path, new: Path) -> RunEquality:
    """Compare two runs outcome by outcome, measurements and artefacts too. Raises Trouble for what is no run."""
    sides = PairedRuns(old, new, NO_FILTER)
    try:
        both = sides.query_number(f"SELECT count(*) FROM {PAIRED_FROM_NEW}")
        alone = sum(sides.query_number(f"SELECT count(*) FROM {side}.outcome") - both for side in ("old", "new"))
        differing, verdicts, examples = 0, 0, list[tuple[str, str]]()
        for check, subject, verdict in sides.connection.execute(_DIFFERING):
            differing, verdicts = differing + 1, verdicts + verdict
            if len(examples) < MAX_EXAMPLES:
                examples.append((check, subject))
        return RunEquality(both, alone, differing, verdicts, tuple(examples))
    finally:
        sides.close()


_BESIDE = """
(SELECT count(*) FROM new.{0} m WHERE m.subject = n.subject AND m.check_ = n.check_)
  != (SELECT count(*) FROM old.{0} m WHERE m.subject = o.subject AND m.check_ = o.check_)
OR EXISTS (SELECT 1 FROM new.{0} m {1} WHERE m.subject = n.subject AND m.check_ = n.check_ AND NOT EXISTS (
  SELECT 1 FROM old.{0} p {2} WHERE p.subject = o.subject AND p.check_ = o.check_ AND {3}))
"""
_GAUGE = " AND ".join(f"g.{one} IS h.{one}" for one in ("name", "unit", "at_least", "at_most", "source"))
_MEASURED = _BESIDE.format(
    "measurement",
    "JOIN new.gauge g ON g.id = m.gauge",
    "JOIN old.gauge h ON h.id = p.gauge",
    f"p.n = m.n AND p.value = m.value AND {_GAUGE}",
)
_KEPT = _BESIDE.format("artefact", "", "", "p.name = m.name AND p.digest = m.digest AND p.bytes = m.bytes")
_SHARED = " OR ".join(
    [
        *(f"c1.{one} != c2.{one}" for one in ("fault", "phases", "active")),
        "s1.node != s2.node",
        *(f"d1.{one} IS NOT d2.{one}" for one in ("digest", "at")),
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
WHERE n.verdict != o.verdict OR n.observed IS NOT o.observed OR {_SHARED} OR {_MEASURED} OR {_KEPT}
"""
