"""The shapes of what `assay rejudge`, `report`, `prune` and `suites` print with `--format json`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.cli.verbs.rejudge import RejudgeHead
from assay.model.facts import fact

if TYPE_CHECKING:
    from assay.tell.report.registry import ComparisonAnswer


@fact
class RejudgeAnswer(RejudgeHead):
    """A run that was judged again, and how that differs."""

    comparison: ComparisonAnswer
    """What differs, as `assay results --compare` tells it."""
