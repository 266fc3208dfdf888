"""What happens next to every node: a pure function of the situation."""

from __future__ import annotations

from assay.lifecycle.situation import Situation
from assay.model.decision import Decision


def decide(situation: Situation) -> list[Decision]:
    """Return what is to be decided now that was not decided before, in an order that does not depend on the input's."""
    raise NotImplementedError
