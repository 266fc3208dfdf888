"""The ladder of remedies: which step a node has come to, and whether a fault has outlived its repair."""

from __future__ import annotations

from datetime import datetime

from assay.lifecycle.story import Known, Story
from assay.lifecycle.when import hours, moment
from assay.model.policy import Ladder, Rung

AFRESH = frozenset({"certified", "replaced"})
"""After these a node's ladder begins anew: a person answers for it, or another part stands in the place."""


def climb(ladder: Ladder, story: Story, remedy: str, now: datetime) -> tuple[str, Rung] | None:
    """Return the first step from `remedy` upwards that the node has not used up; None where `remedy` is no step.

    The top of the ladder is never used up. What was done before the node was last certified, or got another part,
    does not count.
    """
    rungs = {str(name): rung for name, rung in ladder.rungs.items()}
    start = _start(ladder, story, now)
    while rung := rungs.get(remedy):
        used = sum(1 for move in story.moves if move.remedy == remedy and moment(move.at) > start)
        if used < rung.times or rung.then is None:
            return remedy, rung
        remedy = rung.then
    return None


def recurred(ladder: Ladder, story: Story, fault: Known, now: datetime) -> bool:
    """Whether a fault of this class was repaired within the window and came back."""
    start = _start(ladder, story, now)
    repairs = [repair.at for repair in story.repairs if repair.what not in AFRESH and moment(repair.at) > start]
    earlier = [known for known in story.faults if known.fault_class == fault.fault_class and known.id != fault.id]
    return any(known.last_seen < at < fault.first_seen for known in earlier for at in repairs)


def _start(ladder: Ladder, story: Story, now: datetime) -> datetime:
    anew = max((repair.at for repair in story.repairs if repair.what in AFRESH), default="")
    return max(now - hours(ladder.window_hours), moment(anew))
