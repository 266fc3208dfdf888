"""The shapes of what `assay rejudge`, `report`, `prune` and `suites` print with `--format json`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.model.facts import fact
from assay.validate.must_fail_verification import UnprovedCheck

if TYPE_CHECKING:
    from assay.tell.report.registry import ComparisonAnswer
    from assay.validate.check_catalogue import CheckDescription


@fact
class RejudgeHead:
    """What of a rejudging comes before the comparison."""

    run: str
    """The id of the run."""
    spec: str
    """The commit or the folder whose specs judged it again."""
    itself: bool
    """Whether these are the specs that judged it first."""
    identical: bool
    """Whether no outcome differs."""
    differing: int
    """How many outcomes differ, if only in a reason or a measurement."""
    verdicts: int
    """How many outcomes differ in the verdict."""
    alone: int
    """How many outcomes only one of the two has."""
    programs: list[str]
    """The programs that judged in another version."""


@fact
class RejudgeAnswer(RejudgeHead):
    """A run that was judged again, and how that differs."""

    comparison: ComparisonAnswer
    """What differs, as `assay results --compare` tells it."""


@fact
class ReportPagesAnswer:
    """Where the pages of the report are."""

    overview: str
    """The first page."""
    allure: str
    """The folder of the Allure report."""


@fact
class RetainedRun:
    """A run that is kept although it is old."""

    run: str
    """The id of the run."""
    why: str
    """Why it is kept."""


@fact
class PrunedEvidence:
    """Evidence that was deleted, or would be."""

    documents: int
    """How many documents."""
    bytes: int
    """Their size in bytes."""
    kept_all: str
    """Why all evidence is kept; "" if not all is."""


@fact
class PruneAnswer:
    """What is older than the policy wants and was deleted, or would be."""

    deleted: bool
    """Whether it was deleted; false without --yes."""
    runs: list[str]
    """The ids of the runs."""
    artefacts: int
    """How many files of failures that only these runs have."""
    outcomes: int
    """How many outcomes in the ledger."""
    bytes: int
    """The size of runs and artefacts in bytes."""
    evidence: PrunedEvidence
    """The evidence."""
    rejudgeable: int
    """How many of these runs `assay rejudge` could judge again until now."""
    kept: list[RetainedRun]
    """The runs that are kept although they are old."""


@fact
class SuitesListAnswer:
    """Every check of the fleet."""

    checks: list[CheckDescription]
    """The checks, by file and name."""


@fact
class SuitesVerifyAnswer:
    """Whether each check passes on the good recording and fails on its cases for the stated reason."""

    checks: list[str]
    """The ids of the checks."""
    cases: int
    """How many cases were run."""
    unproved: tuple[UnprovedCheck, ...]
    """What does not hold; with any, the exit code is 1."""
