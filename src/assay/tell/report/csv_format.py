"""Formats results as CSV: a line for each outcome, or for each change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, fields

from assay.model.text.csv_rows import format_csv
from assay.validate.results.comparison_summary import RunDifferences
from assay.validate.results.run_comparison import OutcomeChange
from assay.validate.results.run_summary import RunSummary

OUTCOME_COLUMNS = (
    *("run", "node", "subject", "check", "verdict", "reason", "fault", "known", "observed", "phases", "evidence_at"),
    *("duration_s", "measurements"),
)
CHANGE_COLUMNS = tuple(field.name for field in fields(OutcomeChange))


def format_csv_outcomes(summary: RunSummary) -> Iterator[str]:
    """Yield the titles, and a line for each outcome with the id of its run. Measurements are JSON in one cell."""
    run = summary.run.id
    yield from format_csv(OUTCOME_COLUMNS, ({"run": run, **outcome.as_json()} for outcome in summary.outcomes()))


def format_csv_comparison(differences: RunDifferences) -> Iterator[str]:
    """Yield the titles, and a line for each change."""
    yield from format_csv(CHANGE_COLUMNS, map(asdict, differences.comparison.changes()))
