"""The answer to one question: what gets worse in these files, as of a moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from assay.trends.peers.change_scores import score_changes
from assay.trends.peers.change_warnings import BUDGET, ChangeFindings, ChangeWarning, find_change_warnings, list_weeks
from assay.trends.peers.measurement_tables import DAY_S, TrendFiles, open_tables
from assay.trends.peers.shared_groups import name_shared_groups

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True, slots=True)
class TrendAnswer:
    """The warnings, the worst first, and how they were found."""

    findings: ChangeFindings
    warnings: list[ChangeWarning]

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data, as the edge has it."""
        found = self.findings
        rule = {
            "name": "change",
            "threshold": round(found.threshold, 2),
            "threshold_from": "history" if found.is_learned else "default",
            "alarms_per_1000_node_days": BUDGET,
            "series": found.series.judged,
            "warnings": len(self.warnings),
        }
        warnings = [warning.as_json() for warning in self.warnings]
        return {"warnings": warnings, "cannot_tell": found.series.cannot_tell, "rules": [rule]}


def answer_trends(files: TrendFiles, as_of: datetime) -> TrendAnswer:
    """Return what gets worse as of a moment; nothing after it is read. Raises AssayError for a wrong file."""
    with open_tables(files, as_of) as database:
        return find_trends(database, as_of)


def find_trends(database: DuckDBPyConnection, as_of: datetime) -> TrendAnswer:
    """Return what gets worse by the tables of a database, see `open_tables`."""
    today = int(as_of.timestamp() // DAY_S)
    first = database.execute("SELECT min(time_s) // 86400 FROM measurements").fetchall()[0][0]
    weeks = list_weeks(today, int(first)) if first is not None else []
    scores = score_changes(database, today, weeks)
    findings = find_change_warnings(scores, len(weeks))
    names = sorted({warning.score.name for warning in findings.warnings})
    return TrendAnswer(findings, name_shared_groups(findings.warnings, scores.size_groups(names)))
