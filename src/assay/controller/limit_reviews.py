"""Reviews the limits of a fleet by its history and ledger, and makes the pull requests of those that should change.

Trends read no specs, and the fleet no history; this module joins them. It changes no file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True, slots=True)
class LimitProposal:
    """A reviewed limit. `diff`: of the pull request, where another value is better; else `why_no_diff`."""

    reviewed: ReviewedLimit
    diff: str = ""
    why_no_diff: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {**self.reviewed.as_json(), "diff": self.diff, "why_no_diff": self.why_no_diff}


def review_fleet_limits(fleet: Fleet, ledger: Ledger, home: Path, as_of: datetime, days: int) -> list[LimitProposal]:
    """Return every limit in the history in `home`, as of a moment. Raises AssayError without a history."""
    in_service = [name for name, state in fleet.policy.states.items() if state.in_service]
    losses = read_service_losses(ledger, in_service, as_of - timedelta(days=days), as_of)
    specs = {node.name: node.spec for node in fleet.nodes.values()}
    reviewed = review_limits(LimitQuestion(home, as_of, days, specs, losses))
    drafts = _LimitDrafts(fleet, as_of, days)
    return [drafts.propose(one) for one in reviewed]


@dataclass(frozen=True)
class _LimitDrafts:
    """Finds the line of each limit as the specs are now, and drafts its change."""

    fleet: Fleet
    as_of: datetime
    days: int

    def propose(self, one: ReviewedLimit) -> LimitProposal:
        """Return the proposal; with a diff if another value is better, and the limit is still as it was measured."""
        if one.suggestion is None or not one.suggestion.is_better:
            return LimitProposal(one)
        try:
            return LimitProposal(one, self._draft(one.profile.limit, one.suggestion))
        except AssayError as error:
            return LimitProposal(one, why_no_diff=error.what)

    def _draft(self, limit: KnownLimit, suggestion: SuggestedLimit) -> str:
        spec, name = self._find_declared(limit)
        where = self.fleet.lines.get((f"NodeSpec/{spec}", f"limits.{name}.value"), "")
        where = where or self.fleet.lines.get((f"NodeSpec/{spec}", f"limits.{name}"), "")
        file = where.rpartition(":")[0]
        if not file:
            raise AssayError("nobody knows the file of the limit")
        text = (self.fleet.root / file).read_text(encoding="utf-8")
        history = (
            f"assay trends limits, {self.days} days to {self.as_of:%Y-%m-%d}: {describe_record(suggestion.record)}"
        )
        return make_limit_diff(file, text, name, suggestion.value, history)

    def _find_declared(self, limit: KnownLimit) -> tuple[str, str]:
        """Return spec and name of a limit. Raises AssayError unless its value is the one that was measured against."""
        for spec, name in self._list_candidates(limit):
            declared = self.fleet.node_specs[spec].limits.get(name)
            if declared and (declared.value, declared.unit) == (limit.value, limit.unit):
                return spec, name
        raise AssayError("the limit is no value of a spec, or has changed since it was last measured")

    def _list_candidates(self, limit: KnownLimit) -> Iterator[tuple[str, str]]:
        specs = [spec for spec in limit.specs if spec in self.fleet.node_specs]
        reads = self._reads.get(limit.check)
        sides = reads.limits_by_measurement().get(limit.name, []) if reads else []
        names = [name for side, name in sides if side == limit.side]
        yield from ((spec, name) for name in names for spec in specs)
        if not sides and limit.source in self._names_by_line:
            yield from ((spec, self._names_by_line[limit.source]) for spec in specs)

    @cached_property
    def _reads(self) -> Mapping[str, Any]:
        return read_check_inputs(WorkingFolder(self.fleet.root))

    @cached_property
    def _names_by_line(self) -> Mapping[str, str]:
        paths = ((path.split("."), line) for (_, path), line in self.fleet.lines.items() if path.startswith("limits."))
        return {line: steps[1] for steps, line in paths}
