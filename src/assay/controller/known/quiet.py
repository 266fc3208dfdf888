"""From when on there is nothing to decide about a node, as long as nothing new is heard of it. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from assay.lifecycle.owed import owed
from assay.lifecycle.story import Story
from assay.lifecycle.when import hours, moment
from assay.model.policy import LifecyclePolicy, State


def rests_from(policy: LifecyclePolicy, story: Story) -> datetime | None:
    """Return from when on a node may come to `decide` as a count (see `Situation.quiet`); None: it must come itself.

    It serves in a state that time alone does not end, nothing waits, is open or owed, and what it did last no longer
    counts towards any limit or breaker.
    """
    state = policy.states.get(story.state)
    if state is None or not _rests_in(state) or _waits(story) or owed(policy, story):
        return None
    window = timedelta(minutes=policy.breaker.window_minutes)
    moved = moment(story.moves[-1].at) + hours(1) if story.moves else moment(story.since)
    return max([moved, *(moment(known.first_seen) + window for known in story.faults)])


def _rests_in(state: State) -> bool:
    return state.in_service and not (state.requires or state.pass_to or state.deadline)


def _waits(story: Story) -> bool:
    """Whether something about the node is not over: a word, a decision, an effect that did not end well, a fault."""
    asked_by = {story.decision, story.withdrawn.by if story.withdrawn else ""}
    here = [effect for effect in story.effects if effect.decision in asked_by]
    return bool(
        story.pending
        or story.held
        or story.asked
        or story.certified
        or story.in_flight
        or any(effect.standing == "failed" for effect in here)
        or any(known.open for known in story.faults)
    )
