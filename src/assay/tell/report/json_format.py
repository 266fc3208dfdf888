"""Formats results as one JSON document, or as JSON lines, one for each outcome.

Outcomes are written as they are read, so that a million of them need no memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from assay.model.outcome import VERDICTS
from assay.validate.results.comparison_summary import RunDifferences
from assay.validate.results.run_comparison import CHANGE_KINDS
from assay.validate.results.run_summary import RunSummary

if TYPE_CHECKING:
    from assay.tell.report.outcome_answers import ComparisonHead, RunHead

ENCODE_JSON = json.JSONEncoder(ensure_ascii=False, default=asdict).encode


def format_json(summary: RunSummary) -> Iterator[str]:
    """Yield a run: `run`, `ended`, `remark` (why it cannot be relied on, or ""), `counts`, `outcomes` and more.

    `deciding` is the number of failures and errors that nothing excuses, `left_out` of outcomes that nobody asked for.
    """
    about: RunHead = {
        "run": summary.run,
        "ended": summary.ended,
        "remark": summary.remark,
        "counts": {verdict: summary.counts[verdict] for verdict in VERDICTS},
        "deciding": summary.deciding.total(),
        "left_out": summary.stored.count_left_out(),
        "influences": dict(summary.stored.influences),
    }
    yield from _document(about, "outcomes", (outcome.as_json() for outcome in summary.outcomes()))


def format_json_comparison(differences: RunDifferences) -> Iterator[str]:
    """Yield a comparison: both runs, counts by kind, what appeared and vanished, flaky outcomes, shifts, changes."""
    comparison = differences.comparison
    about: ComparisonHead = {
        "old": differences.old,
        "new": differences.new,
        "counts": {kind: comparison.counts[kind] for kind in CHANGE_KINDS},
        "deciding": {kind: comparison.deciding[kind] for kind in CHANGE_KINDS},
        "worse": comparison.worse,
        "both": comparison.both,
        "apart": {"old": comparison.apart[0], "new": comparison.apart[1]},
        "checks": {"appeared": [*comparison.appeared], "vanished": [*comparison.vanished]},
        "nodes": {"appeared": [*comparison.nodes_appeared], "vanished": [*comparison.nodes_vanished]},
        "flapping": list(differences.flaky),
        "moved": list(differences.shifted),
    }
    yield from _document(about, "changes", (asdict(change) for change in comparison.changes()))


def _document(about: Mapping[str, object], name: str, entries: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield a document whose last value is a long list, with a line for each entry of the list."""
    yield f"{ENCODE_JSON(about)[:-1]}, {ENCODE_JSON(name)}: ["
    comma = ""
    for entry in entries:
        yield comma + ENCODE_JSON(entry)
        comma = ", "
    yield "]}"


def format_jsonl(summary: RunSummary) -> Iterator[str]:
    """Yield a line for each outcome, with the run's id as `run`."""
    run = summary.run.id
    for outcome in summary.outcomes():
        yield ENCODE_JSON({"run": run, **outcome.as_json()})
