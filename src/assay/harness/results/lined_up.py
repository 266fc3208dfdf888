"""Two runs side by side: what each numbers in its own way is lined up by name, in SQL, on disk where it grows large."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from assay.harness.results.wanted import Wanted
from assay.harness.store.read import Stored
from assay.model.outcome import Run

SIDES = ("new", "old")
BOTH = """
{0}.outcome {1} CROSS JOIN subject_of s ON s.{0} = {1}.subject CROSS JOIN check_of c ON c.{0} = {1}.check_
CROSS JOIN {2}.outcome {3} ON {3}.subject = s.{2} AND {3}.check_ = c.{2}
"""
FROM_NEW = BOTH.format("new", "n", "old", "o")
"""What both runs judged, walked along the new one's rows (`n`); `o` are the old one's."""
FROM_OLD = BOTH.format("old", "o", "new", "n")
"""The same, walked along the old one's rows."""


class LinedUp:
    """Two runs on one connection, attached as `new` and `old`.

    `subject_new`, `subject_old`, `check_new` and `check_old` hold what is wanted of each, and whether the other run
    was asked for it too; `subject_of` and `check_of` (new, old) say what has the same name.
    """

    def __init__(self, old: Path, new: Path, wanted: Wanted) -> None:
        self.runs: dict[str, Run] = {}
        self.ended: dict[str, bool] = {}
        self.connection = sqlite3.connect("", isolation_level=None, uri=True)  # "": on disk, and gone with us
        for side, path in zip(SIDES, (new, old), strict=True):
            with Stored.open(path) as stored:
                self.runs[side], self.ended[side] = stored.run, "ended" in stored.about
            self.connection.execute(f"ATTACH ? AS {side}", (f"file:{quote(str(path.resolve()))}?mode=ro",))
        for side, other in zip(SIDES, reversed(SIDES), strict=True):
            self._subjects(side, wanted, other)
            self._checks(side, wanted, self.runs[other])
        for what in ("subject", "check"):
            self._pair(what)

    def close(self) -> None:
        """Let go of both."""
        self.connection.close()

    def count(self, question: str) -> int:
        """Return the one number that a question has for an answer."""
        found: int = self.connection.execute(question).fetchone()[0]
        return found

    def names(self, question: str) -> tuple[str, ...]:
        """Return the one column that a question has for an answer."""
        return tuple(row[0] for row in self.connection.execute(question))

    def _subjects(self, side: str, wanted: Wanted, other: str) -> None:
        ended, nodes = self.ended[other], frozenset(self.runs[other].nodes)  # what it has not come to is not missing
        whole = ended and nodes.issuperset(self.runs[side].nodes)  # then its racks and fabrics were asked for too
        rows = self.connection.execute(f"SELECT id, name, node FROM {side}.subject")
        kept = ((*row, ended and row[2] in nodes if row[2] else whole) for row in rows if wanted.subject(*row[1:]))
        self._table(f"subject_{side} (id INTEGER PRIMARY KEY, name TEXT, node TEXT, asked INTEGER)", kept)

    def _checks(self, side: str, wanted: Wanted, other: Run) -> None:
        rows = self.connection.execute(f"SELECT id, name, phases FROM {side}.check_")
        read = ((number, name, json.loads(phases)) for number, name, phases in rows)
        kept = (
            (number, name, not other.phases or not set(other.phases).isdisjoint(phases))
            for number, name, phases in read
            if wanted.check(name, phases)
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
