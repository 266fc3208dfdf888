"""What is put beside an outcome when it is made: what excuses it, whether its check only observes, what was judged.

A verdict is never changed by this, and a pass costs next to nothing.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from assay.harness.judging.evidence_cache import EvidenceCache
from assay.harness.judging.verdict import CheckContext
from assay.model.fleet import Fleet
from assay.model.outcome import FailureArtefact, Outcome
from assay.model.specs.known_issues import ExcuseCandidate, find_excuse

if TYPE_CHECKING:
    from assay.harness.judging.failure_artefacts import FailureArtefacts
    from assay.harness.judging.outcome_delivery import OutcomeDelivery


class OutcomeAnnotator:
    """For one session, by the time of its run. Artefacts are kept where its outcomes are, else nothing is."""

    def __init__(self, fleet: Fleet, delivery: OutcomeDelivery | None, shelf: EvidenceCache) -> None:
        self._fleet, self._delivery, self._shelf = fleet, delivery, shelf
        self._observed = fleet.observed_checks

    def __call__(self, outcome: Outcome, trial: CheckContext) -> Outcome:
        """Return the outcome with all that belongs beside it."""
        observed = outcome.check in self._observed
        if outcome.verdict == "fail":
            known, artefacts = self._find_excuse(outcome), self._capture_artefacts(outcome, trial)
            return replace(outcome, known=known, observed=observed, artefacts=artefacts)
        return replace(outcome, observed=True) if observed else outcome

    @cached_property
    def _now(self) -> datetime:
        """When the run is; of a session that is no run, when it first asks."""
        return datetime.fromisoformat(self._delivery.run.at) if self._delivery else datetime.now(UTC)

    @cached_property
    def _artefacts(self) -> FailureArtefacts | None:
        if self._delivery is None:
            return None
        from assay.harness.judging.failure_artefacts import (  # which most sessions have no use for
            FailureArtefacts,
            artefact_folder,
        )

        return FailureArtefacts(
            artefact_folder(self._delivery.file), self._shelf.folder.parent / "objects", self._fleet
        )

    def _capture_artefacts(self, outcome: Outcome, trial: CheckContext) -> tuple[FailureArtefact, ...]:
        return self._artefacts.capture(outcome, trial) if self._artefacts else ()

    def _find_excuse(self, outcome: Outcome) -> str:
        """Return the link of the issue that excuses a failure, "" where none does."""
        if not self._fleet.known_issues:
            return ""
        judged = ExcuseCandidate.from_node(outcome.check, outcome.subject, self._fleet.nodes.get(outcome.node))
        issue = find_excuse(self._fleet.known_issues, judged, self._now)
        return issue.issue if issue else ""
