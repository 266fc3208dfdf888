"""Reads every outcome of the history as it was recorded, to compare it with what a run had."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache

from assay.ledger.history.parquet_files import ARTEFACTS_TABLE, MEASUREMENTS_TABLE
from assay.ledger.history.queries import ALL_OUTCOMES, HistoryRow, OutcomeHistory, OutcomeQuery
from assay.model.outcome import FailureArtefact, Measurement, Outcome, RecordedOutcome

_OUTCOMES = """
SELECT run, run_at, check_, subject, node, verdict, reason, fault, phases, active, evidence, evidence_at, micros,
  known, observed
FROM among($files, $nodes, $subjects, $checks, $pattern) ORDER BY subject, check_, run
"""
_MEASUREMENTS = """
SELECT run, check_, subject, name, value, unit, at_least, at_most, source
FROM among($files, $nodes, $subjects, $checks, $pattern) ORDER BY run, subject, check_, n
"""
_ARTEFACTS = """
SELECT run, check_, subject, name, digest, bytes
FROM among($files, $nodes, $subjects, $checks, $pattern) ORDER BY run, subject, check_, name
"""


def query_outcomes(
    history: OutcomeHistory, query: OutcomeQuery = ALL_OUTCOMES, *, days: int, measured: bool = False
) -> list[RecordedOutcome]:
    """Return outcomes by subject, check and run, with measurements and artefacts only where `measured`."""
    measurements = _group_by_outcome(
        history.fetch(_MEASUREMENTS, query, days=days, table=MEASUREMENTS_TABLE) if measured else []
    )
    artefacts = _group_by_outcome(
        history.fetch(_ARTEFACTS, query, days=days, table=ARTEFACTS_TABLE) if measured else []
    )
    return [_read_outcome(row, measurements, artefacts) for row in history.fetch(_OUTCOMES, query, days=days)]


def _group_by_outcome(rows: list[HistoryRow]) -> dict[HistoryRow, list[HistoryRow]]:
    """Return the rows of each outcome, by run, check and subject."""
    groups: dict[HistoryRow, list[HistoryRow]] = defaultdict(list)
    for row in rows:
        groups[row[:3]].append(row[3:])
    return groups


def _read_outcome(
    row: HistoryRow, measurements: dict[HistoryRow, list[HistoryRow]], artefacts: dict[HistoryRow, list[HistoryRow]]
) -> RecordedOutcome:
    run, at, check, subject, node, verdict, reason, fault, phases, active, *rest = row
    evidence, seen_at, micros, known, observed = rest
    key = (run, check, subject)
    return RecordedOutcome(
        run,
        at,
        Outcome(
            check,
            subject,
            node,
            verdict,
            reason,
            fault,
            _phases(phases),
            active,
            evidence,
            seen_at,
            micros / 1e6,
            tuple(Measurement(*values) for values in measurements[key]) if key in measurements else (),
            known,
            observed,
            tuple(FailureArtefact(*values) for values in artefacts[key]) if key in artefacts else (),
        ),
    )


@cache
def _phases(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))
