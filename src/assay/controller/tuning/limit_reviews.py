"""Reviews the limits of a fleet by its history and ledger, and drafts the pull requests of those that should change.

It changes no file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from assay.controller.tuning.declared_limits import DeclaredLimits
from assay.fleet.repository_tree import WorkingFolder
from assay.fleet.spec_values_read_by_checks import read_check_inputs
from assay.ledger.store import Ledger
from assay.model.backtest_report import describe_record
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.trends.limits.known_limits import KnownLimit
from assay.trends.limits.limit_diff import make_limit_diff
from assay.trends.limits.limit_review import ReviewedLimit, SuggestedLimit, review_limits
from assay.trends.limits.limit_tables import LimitQuestion
from assay.trends.missed.service_failures import read_service_losses

if TYPE_CHECKING:
    from assay.trends.shapes.review_answers import LimitProposalAnswer


@dataclass(frozen=True, slots=True)
class LimitProposal:
    """A reviewed limit. `diff`: of the pull request, where another value is better; else `why_no_diff`."""

    reviewed: ReviewedLimit
    diff: str = ""
    why_no_diff: str = ""

    def as_json(self) -> LimitProposalAnswer:
        """Return plain JSON data."""
        return {**self.reviewed.as_json(), "diff": self.diff, "why_no_diff": self.why_no_diff}


def review_fleet_limits(
    fleet: Fleet, ledger: Ledger, home: Path, as_of: datetime, days: int, skipped: Callable[[AssayError], None]
) -> list[LimitProposal]:
    """Return every limit in the history in `home`, as of a moment. Raises AssayError without a history.

    `skipped` receives the error of each damaged file, which is left out.
    """
    in_service = fleet.policy.states_in_service
    losses = read_service_losses(ledger, in_service, as_of - timedelta(days=days), as_of)
    specs = {node.name: node.spec for node in fleet.nodes.values()}
    reviewed = review_limits(LimitQuestion(home, as_of, days, specs, losses), skipped)
    declared = DeclaredLimits(fleet, read_check_inputs(WorkingFolder(fleet.root)))
    period = f"{days} days to {as_of:%Y-%m-%d}"
    return [_propose(one, declared, period) for one in reviewed]


def _propose(one: ReviewedLimit, declared: DeclaredLimits, period: str) -> LimitProposal:
    """Return the proposal; with a diff if another value is better, and the limit is still as it was measured."""
    if one.suggestion is None or not one.suggestion.is_better:
        return LimitProposal(one)
    try:
        return LimitProposal(one, _draft(one.profile.limit, one.suggestion, declared, period))
    except AssayError as error:
        return LimitProposal(one, why_no_diff=error.what)


def _draft(limit: KnownLimit, suggestion: SuggestedLimit, declared: DeclaredLimits, period: str) -> str:
    """Return the diff. Raises AssayError where the limit is not found as it was measured against."""
    fleet = declared.fleet
    names = (one for one in declared.list_names(limit) if declared.is_as_measured(*one, limit))
    spec, name = next(names, ("", ""))
    lines = (fleet.lines.get((f"NodeSpec/{spec}", f"limits.{name}{field}")) for field in (".value", ""))
    where = next(filter(None, lines), "")
    if not where:
        raise AssayError("the limit is no value of a spec, or has changed since it was last measured")
    file = where.rpartition(":")[0]
    text = (fleet.root / file).read_text(encoding="utf-8")
    source = f"assay trends limits, {period}: {describe_record(suggestion.record)}"
    return make_limit_diff(file, text, name, suggestion.value, source)
