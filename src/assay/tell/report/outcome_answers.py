"""The shapes of runs, their outcomes and comparisons as JSON."""

from __future__ import annotations

from typing_extensions import TypedDict

from assay.model.outcome import CheckVerdict, FailureArtefact, Measurement, SuiteRun
from assay.tell.report.text_format import RunListing
from assay.validate.results.flaky_changes import FlakyOutcome
from assay.validate.results.measurement_shifts import MeasurementShift
from assay.validate.results.run_comparison import ChangeKind, OutcomeChange


class OutcomeInAnswer(TypedDict):
    """One check on one subject."""

    check: str
    """The id of the check, as pytest names it, without parameters."""
    subject: str
    """What was judged: a node (pool/node), a part of it (pool/node/part), a rack or a fabric."""
    node: str
    """The node of the subject; "" for a rack or a fabric."""
    verdict: CheckVerdict
    """The verdict. An error is a check that could not be judged."""
    reason: str
    """Why the verdict is so; "" only for a pass."""
    fault: str
    """The fault class that a failure means; "" if none is named."""
    phases: list[str]
    """The phases that the check belongs to."""
    active: bool
    """Whether the check loads the node, instead of only reading it."""
    evidence: str
    """The digest of the evidence that was judged; "" without any."""
    evidence_at: str
    """When that evidence was collected: ISO 8601 UTC; "" without any."""
    duration_s: float
    """How many seconds the judging took."""
    measurements: list[Measurement]
    """The numbers that the check compared with limits."""
    known: str
    """The known issue that excuses this failure; "" for none."""
    observed: bool
    """Whether the check is at stage observe: its outcome is reported and decides nothing."""
    artefacts: list[FailureArtefact]
    """The files that are stored with a failure."""
    basis: str
    """The ledger entry and the boot that the evidence rests on, as text; "" if that is not known."""
    judged_by: str
    """The digest of code, limits and spec values that judged; "" if that is not known."""


class RunHead(TypedDict):
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


class RunAnswer(RunHead):
    """A run and its outcomes."""

    outcomes: list[OutcomeInAnswer]
    """The selected outcomes, by subject and check."""


class SideCounts(TypedDict):
    """A number for each of two runs."""

    old: int
    """The number in the older run."""
    new: int
    """The number in the newer run."""


class NameChanges(TypedDict):
    """Names that only one of two runs has."""

    appeared: list[str]
    """The names that only the newer run has."""
    vanished: list[str]
    """The names that only the older run has."""


class ComparisonHead(TypedDict):
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
    flapping: list[FlakyOutcome]
    """The checks whose verdict turns again and again."""
    moved: list[MeasurementShift]
    """The measurements that shifted by more than their noise."""


class ComparisonAnswer(ComparisonHead):
    """What changed between two runs."""

    changes: list[OutcomeChange]
    """The changes, kind by kind."""


class RunListAnswer(TypedDict):
    """The runs, newest first."""

    runs: list[RunListing]
    """The runs that are listed."""
    of: int
    """How many runs there are, damaged ones too."""


class UnexpectedPass(TypedDict):
    """A known issue that excuses nothing any more."""

    issue: str
    """The issue."""
    passes: int
    """How many checks that it would excuse passed."""


class ValidationHead(TypedDict):
    """What of a validation comes before its outcomes."""

    run: SuiteRun
    """The run."""
    whole: bool
    """Whether all was judged to its end; if not, `assay validate --resume` goes on."""
    counts: dict[CheckVerdict, int]
    """How many outcomes there are of each verdict."""
    deciding: int
    """How many failures and errors nothing excuses."""
    missing: int
    """How many declared outcomes are missing, and count as errors."""
    remark: str
    """Why the run cannot be relied on; "" if it can."""
    left_out: int
    """How many declared outcomes the options left out."""
    influences: dict[str, str]
    """The files outside of the suites that may have changed what was judged, each with its hooks, or "settings"."""
    unexpected: list[UnexpectedPass]
    """The known issues that excuse nothing any more."""


class ValidationAnswer(ValidationHead):
    """What a run of the checks has found."""

    outcomes: list[OutcomeInAnswer]
    """The outcomes, by subject and check."""
