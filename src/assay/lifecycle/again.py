"""What the breaker held and is there still: old events are not replayed, evidence that is younger counts."""

from __future__ import annotations

from assay.lifecycle.situation import NodeView
from assay.lifecycle.story import Known
from assay.lifecycle.when import moment


def still_failing(view: NodeView, known: Known) -> bool:
    """Whether evidence that is younger than the breaker shows a check's fault again."""
    return any(
        one.outcome.verdict == "fail"
        and (one.outcome.fault, one.outcome.subject) == (known.fault_class, known.subject)
        and moment(one.measured_at) > moment(known.answered_at)
        for one in view.latest
    )
