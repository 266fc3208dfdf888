"""Annotates outcomes: with the known issue that excuses a failure, with `observed`, and with failure artefacts.

It never changes a verdict, and costs next to nothing for a pass.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from assay.harness.judging.evidence_cache import EvidenceCache
from assay.harness.judging.verdict import CheckContext
from assay.lifecycle.decisions.known_issues import find_known_issue
from assay.model.fleet import Fleet
from assay.model.outcome import Outcome

if TYPE_CHECKING:
    from assay.harness.judging.failure_artefacts import FailureArtefacts
    from assay.harness.judging.outcome_delivery import OutcomeDelivery


class OutcomeAnnotator:
    """Annotates the outcomes of one session. Artefacts go beside the file of outcomes; without one there are none."""

    def __init__(self, fleet: Fleet, delivery: OutcomeDelivery | None, evidence_cache: EvidenceCache) -> None:
        self._fleet, self._delivery, self._evidence_cache = fleet, delivery, evidence_cache
        self._observed = fleet.observed_checks

    def __call__(self, outcome: Outcome, context: CheckContext) -> Outcome:
        """Return the annotated outcome."""
        observed = outcome.check in self._observed
        if outcome.verdict == "fail":
            artefacts = self._artefacts.capture(outcome, context) if self._artefacts else ()
            return replace(outcome, known=self._find_excuse(outcome), observed=observed, artefacts=artefacts)
        return replace(outcome, observed=True) if observed else outcome

    @cached_property
    def _now(self) -> datetime:
        """The time of the run; for a session that stores none, the time of the first failure."""
        return datetime.fromisoformat(self._delivery.run.at) if self._delivery else datetime.now(UTC)

    @cached_property
    def _artefacts(self) -> FailureArtefacts | None:
        if self._delivery is None:
            return None
        from assay.harness.judging.failure_artefacts import FailureArtefacts, artefact_folder  # needed only here

        objects = self._evidence_cache.folder.parent / "objects"
        return FailureArtefacts(artefact_folder(self._delivery.file), objects, self._fleet)

    def _find_excuse(self, outcome: Outcome) -> str:
        """Return the link of the issue that excuses a failure, "" where none does."""
        node = self._fleet.nodes.get(outcome.node)
        issue = find_known_issue(self._fleet.known_issues, outcome, node, self._now)
        return issue.issue if issue else ""
