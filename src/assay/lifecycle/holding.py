"""Holds: released when their time is over, brought to mind while they last."""

from __future__ import annotations

from collections.abc import Iterator

from assay.lifecycle.situation import NodeView, Situation
from assay.lifecycle.verdicts import Wish
from assay.lifecycle.when import hours, moment, spoken
from assay.model.decision import Cause


def holding(situation: Situation, view: NodeView) -> Iterator[Wish]:
    """Yield the release of a hold whose time is over, else a reminder, once for every so many hours."""
    held, policy = view.story.held, situation.policy
    if held is None:
        return
    if held.until and moment(held.until) <= situation.now:
        over = Cause("person", held.id, f"{held.who} held it until {held.until[:19]}: {held.reason}")
        yield Wish(view.story.state, "record", "holds", "hold-ends", (over,), (held.id,), "release")
        return
    times = int((situation.now - moment(held.at)) / hours(policy.holds.remind_hours))
    if times < 1:
        return
    since = spoken(situation.now - moment(held.at))
    because = (Cause("person", held.id, f"held by {held.who} for {since}: {held.reason}"),)
    yield Wish(view.story.state, "record", "holds", "hold-reminder", because, (held.id, str(times)), "none")
