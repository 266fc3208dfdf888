"""How a node stands, in one of seven words: what the colour, the letter and the shape of a node on a page mean."""

from __future__ import annotations

from typing import Literal, get_args

from assay.decide.state.node_state import NodeState
from assay.model.specs.lifecycle_policy import LifecyclePolicy

Standing = Literal["serving", "closing", "work", "people", "held", "unseen", "gone"]
STANDINGS: tuple[Standing, ...] = get_args(Standing)
STANDING_WORDS: dict[Standing, str] = {
    "serving": "in service",
    "closing": "in service, closing to new jobs",
    "work": "out, assay works on it",
    "people": "out, waits for people",
    "held": "held by a person",
    "unseen": "never observed",
    "gone": "gone for good",
}
STANDING_LETTERS: dict[Standing, str] = {
    "serving": "S",
    "closing": "C",
    "work": "W",
    "people": "P",
    "held": "H",
    "unseen": "U",
    "gone": "G",
}


def find_standing(state: NodeState | None, policy: LifecyclePolicy | None) -> Standing:
    """Return how a node stands; None as `state` for one that was never enrolled.

    A state that no policy has counts as waiting for people: nobody says what assay does there.
    """
    if state is None:
        return "unseen"
    if state.hold:
        return "held"
    declared = policy.states.get(state.state) if policy else None
    if declared is None:
        return "people"
    if declared.final:
        return "gone"
    if declared.in_service:
        return "closing" if state.pending else "serving"
    waits_for_people = state.note or (declared.certified_to and not declared.until_idle)
    return "people" if waits_for_people else "work"
