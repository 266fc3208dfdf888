"""Pours a run's file into Parquet: rows of numbers as they are, what they share beside them, joined on the way out.

DuckDB reads no SQLite by itself, so rows are handed over, in order of nodes, as many at a time as fit.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.harness.history.places import ARTEFACTS, MEASUREMENTS, OUTCOMES, RUNS
from assay.harness.store.read import Stored
from assay.harness.store.tables import VERDICTS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

AT_ONCE = 10_000
GROUP = 61_440
"""Rows of a row group. Fewer make every footer longer, more make every look-up read more: measured, see bench."""
_BY_NODE = "FROM (SELECT id FROM subject ORDER BY node, name) s CROSS JOIN {} o ON o.subject = s.id"
"""CROSS JOIN holds SQLite to this order."""

_TAKEN = {
    "check_": (
        "id INTEGER, name TEXT, fault TEXT, phases TEXT, active BOOLEAN",
        "SELECT id, name, fault, phases, active FROM check_",
    ),
    "subject": ("id INTEGER, name TEXT, node TEXT", "SELECT id, name, node FROM subject"),
    "issue": ("id INTEGER, text TEXT", "SELECT id, text FROM text WHERE id IN (SELECT DISTINCT known FROM outcome)"),
    "document": ("id INTEGER, digest TEXT, seen_at TEXT", "SELECT id, digest, at FROM document"),
    "gauge": (
        "id INTEGER, name TEXT, unit TEXT, at_least DOUBLE, at_most DOUBLE, source TEXT",
        "SELECT id, name, unit, at_least, at_most, source FROM gauge",
    ),
    "outcome": (
        """subject INTEGER, check_ INTEGER, verdict UTINYINT, reason TEXT, document INTEGER, micros BIGINT,
        known INTEGER, observed BOOLEAN""",
        "SELECT o.subject, o.check_, verdict, r.text, document, micros, known, observed "
        + _BY_NODE.format("outcome")
        + " LEFT JOIN text r ON r.id = o.reason",
    ),
    "measurement": (
        "subject INTEGER, check_ INTEGER, n INTEGER, gauge INTEGER, value DOUBLE, document INTEGER",
        "SELECT o.subject, o.check_, n, gauge, value, document "
        + _BY_NODE.format("measurement")
        + " CROSS JOIN outcome w ON w.subject = o.subject AND w.check_ = o.check_",
    ),
    "artefact": (
        "subject INTEGER, check_ INTEGER, name TEXT, digest TEXT, bytes BIGINT",
        "SELECT o.subject, o.check_, o.name, digest, bytes " + _BY_NODE.format("artefact"),
    ),
}
"""Each table: its columns in DuckDB, and the question that fills it from the run's file.

Reasons come with their outcomes: where everything fails they are too many to be joined in little memory.
"""

_POURED = {
    RUNS: """
        SELECT $run AS run, $at AS run_at, $phases::VARCHAR[] AS phases, $nodes::VARCHAR[] AS nodes,
          $spec_commit AS spec_commit, $dirty AS dirty, $suite_hash AS suite_hash, $who AS who, $about AS about
        """,
    ARTEFACTS: """
        SELECT $run AS run, $at AS run_at, s.node, s.name AS subject, c.name AS check_, o.name, o.digest, o.bytes
        FROM artefact o JOIN subject s ON s.id = o.subject JOIN check_ c ON c.id = o.check_
        """,
    MEASUREMENTS: """
        SELECT $run AS run, $at AS run_at, s.node, s.name AS subject, c.name AS check_, o.n, g.name, o.value, g.unit,
          g.at_least, g.at_most, g.source, coalesce(d.digest, '') AS evidence
        FROM measurement o JOIN subject s ON s.id = o.subject JOIN check_ c ON c.id = o.check_
          JOIN gauge g ON g.id = o.gauge LEFT JOIN document d ON d.id = o.document
        """,
    OUTCOMES: """
        SELECT $run AS run, $at AS run_at, split_part(s.name, '/', 1) AS pool, s.node, s.name AS subject,
          c.name AS check_, list_extract($verdicts::VARCHAR[], o.verdict + 1) AS verdict,
          coalesce(o.reason, '') AS reason, c.fault, c.phases, c.active,
          coalesce(d.digest, '') AS evidence, coalesce(d.seen_at, '') AS evidence_at, o.micros,
          coalesce(k.text, '') AS known, coalesce(o.observed, false) AS observed
        FROM outcome o JOIN subject s ON s.id = o.subject JOIN check_ c ON c.id = o.check_
          LEFT JOIN document d ON d.id = o.document
          LEFT JOIN issue k ON k.id = o.known
        """,
}
"""Each table of history, as it is made of those. `pool` is what a subject begins with; of fabrics it is `fabric`.

The phases of an outcome are JSON text: a list costs a reader as much as five columns of text.
"""


class Poured:
    """A run's rows inside DuckDB, in order of nodes, from where every table of history can be written."""

    def __init__(self, stored: Stored, database: DuckDBPyConnection) -> None:
        self._database, self._stored = database, stored
        for table, (columns, question) in _TAKEN.items():
            database.execute(f"CREATE TABLE {table} ({columns})")
            appender, rows = database.appender(table), stored.connection.execute(question)
            while some := rows.fetchmany(AT_ONCE):
                appender.append_rows(some)
            appender.flush()

    def write(self, table: str, file: Path) -> None:
        """Write one of history's tables."""
        known = self._known()
        question = _POURED[table]
        named = {name: value for name, value in known.items() if f"${name}" in question}
        rows = self._database.sql(question, params=named)
        rows.write_parquet(str(file), compression="zstd", row_group_size=GROUP)

    def _known(self) -> dict[str, Any]:
        run = self._stored.run
        about = {name: said for name, said in self._stored.about.items() if name != "run"}
        plain = {**asdict(run), "run": run.id, "phases": list(run.phases), "nodes": list(run.nodes)}
        return {**plain, "about": json.dumps(about, ensure_ascii=False), "verdicts": list(VERDICTS)}
