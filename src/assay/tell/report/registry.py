"""The formats of results by name, with functions for a run and for a comparison; JSON and CSV are here.

Outcomes are written as they are read, so that a million of them need no memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from assay.model.facts import fact, to_json
from assay.model.outcome import VERDICTS, CheckVerdict, Outcome, SuiteRun
from assay.model.text.csv_rows import format_csv
from assay.tell.report import junit_format, text_formats
from assay.validate.results.comparison_summary import RunDifferences
from assay.validate.results.run_comparison import CHANGE_KINDS, ChangeKind, OutcomeChange
from assay.validate.results.run_summary import RunSummary

ENCODE_JSON = json.JSONEncoder(ensure_ascii=False).encode
OUTCOME_COLUMNS = (
    *("run", "node", "subject", "check", "verdict", "reason", "fault", "known", "observed", "phases", "evidence_at"),
    *("duration_s", "measurements"),
)
CHANGE_COLUMNS = tuple(field.name for field in fields(OutcomeChange))


@fact
class RunHead:
    """What of a run comes before its outcomes."""

    run: SuiteRun
    """The run."""
    ended: bool
    """Whether it has ended; if not, these are the outcomes so far."""
    remark: str
    """Why the run cannot be relied on; "" if it can."""
    counts: dict[CheckVerdict, int]
    """How many selected outcomes there are of each verdict."""
    deciding: int
    """How many selected failures and errors nothing excuses."""
    left_out: int
    """How many declared outcomes the options of the run left out."""
    influences: dict[str, str]
    """The files outside of the suites that may have changed what was judged, each with its hooks, or "settings"."""


@fact
class RunAnswer(RunHead):
    """A run and its outcomes."""

    outcomes: list[Outcome]
    """The selected outcomes, by subject and check."""


@fact
class SideCounts:
    """A number for each of two runs."""

    old: int
    """The number in the older run."""
    new: int
    """The number in the newer run."""


@fact
class NameChanges:
    """Names that only one of two runs has."""

    appeared: tuple[str, ...]
    """The names that only the newer run has."""
    vanished: tuple[str, ...]
    """The names that only the older run has."""


@fact
class ComparisonHead:
    """What of a comparison comes before its changes."""

    old: SuiteRun
    """The older run."""
    new: SuiteRun
    """The newer run."""
    counts: dict[ChangeKind, int]
    """How many changes there are of each kind."""
    deciding: dict[ChangeKind, int]
    """How many of them count, because nothing excuses them."""
    worse: int
    """How many changes for the worse count; with any, the exit code is 1."""
    both: int
    """How many outcomes both runs have."""
    apart: SideCounts
    """How many outcomes only one run has, because the other was not asked for them."""
    checks: NameChanges
    """The checks that only one run has."""
    nodes: NameChanges
    """The nodes that only one run has."""


@fact
class ComparisonAnswer(ComparisonHead):
    """What changed between two runs."""

    changes: list[OutcomeChange]
    """The changes, kind by kind."""


@fact
class UnexpectedPass:
    """A known issue that excuses nothing any more."""

    issue: str
    """The issue."""
    passes: int
    """How many checks that it would excuse passed."""


@fact
class ValidationHead(RunHead):
    """What of a validation comes before its outcomes. If it has not ended, `assay validate --resume` goes on."""

    missing: int
    """How many declared outcomes are missing, and count as errors."""
    unexpected: list[UnexpectedPass]
    """The known issues that excuse nothing any more."""


@fact
class ValidationAnswer(ValidationHead):
    """What a run of the checks has found."""

    outcomes: list[Outcome]
    """The outcomes, by subject and check."""


def format_json(summary: RunSummary) -> Iterator[str]:
    """Yield a run: `run`, `ended`, `remark` (why it cannot be relied on, or ""), `counts`, `outcomes` and more.

    `deciding` is the number of failures and errors that nothing excuses, `left_out` of outcomes that nobody asked for.
    """
    about = RunHead(
        run=summary.run,
        ended=summary.ended,
        remark=summary.remark,
        counts={verdict: summary.counts[verdict] for verdict in VERDICTS},
        deciding=summary.deciding.total(),
        left_out=summary.stored.count_left_out(),
        influences=dict(summary.stored.influences),
    )
    yield from format_document(about, "outcomes", (outcome.as_json() for outcome in summary.outcomes()))


def format_json_comparison(differences: RunDifferences) -> Iterator[str]:
    """Yield a comparison: both runs, counts by kind, what appeared and vanished, changes."""
    comparison = differences.comparison
    about = ComparisonHead(
        old=differences.old,
        new=differences.new,
        counts={kind: comparison.counts[kind] for kind in CHANGE_KINDS},
        deciding={kind: comparison.deciding[kind] for kind in CHANGE_KINDS},
        worse=comparison.worse,
        both=comparison.both,
        apart=SideCounts(*comparison.apart),
        checks=NameChanges(comparison.appeared, comparison.vanished),
        nodes=NameChanges(comparison.nodes_appeared, comparison.nodes_vanished),
    )
    yield from format_document(about, "changes", (asdict(change) for change in comparison.changes()))


def format_document(about: object, name: str, entries: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield a document whose last value is a long list, with a line for each entry of the list."""
    yield f'{json.dumps(to_json(about), ensure_ascii=False)[:-1]}, "{name}": ['
    comma = ""
    for entry in entries:
        yield comma + ENCODE_JSON(entry)
        comma = ", "
    yield "]}"


def format_csv_outcomes(summary: RunSummary) -> Iterator[str]:
    """Yield the titles, and a line for each outcome with the id of its run. Measurements are JSON in one cell."""
    run = summary.run.id
    yield from format_csv(OUTCOME_COLUMNS, ({"run": run, **outcome.as_json()} for outcome in summary.outcomes()))


def format_csv_comparison(differences: RunDifferences) -> Iterator[str]:
    """Yield the titles, and a line for each change."""
    yield from format_csv(CHANGE_COLUMNS, map(asdict, differences.comparison.changes()))


FormatName = Literal["text", "json", "csv", "junit"]


@dataclass(frozen=True)
class ResultFormat:
    """Functions that yield the lines of a run, and of a comparison where the format supports that."""

    run: Callable[[RunSummary], Iterator[str]]
    comparison: Callable[[RunDifferences], Iterator[str]] | None = None


RESULT_FORMATS: dict[FormatName, ResultFormat] = {
    "text": ResultFormat(text_formats.format_text, text_formats.format_text_comparison),
    "json": ResultFormat(format_json, format_json_comparison),
    "csv": ResultFormat(format_csv_outcomes, format_csv_comparison),
    "junit": ResultFormat(junit_format.format_junit),
}
