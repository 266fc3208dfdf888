"""Holds: released when their time is over, which is said before; brought to mind while they last."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from assay.lifecycle.situation import NodeView, Situation
from assay.lifecycle.story import Word
from assay.lifecycle.verdicts import Wish
from assay.lifecycle.when import hours, moment, spoken
from assay.model.decision import Cause


def holding(situation: Situation, view: NodeView) -> Iterator[Wish]:
    """Yield the release of a hold whose time is over; else a word before that, and a reminder every so many hours."""
    held, policy = view.story.held, situation.policy
    if held is None:
        return
    if held.until and moment(held.until) <= situation.now:
        over = Cause("person", held.id, f"{held.who} held it until {_minute(held.until)}: {held.reason}")
        yield Wish(view.story.state, "record", "holds", "hold-ends", (over,), (held.id,), "release")
        return
    if held.until and _soon(held) <= situation.now:
        over = Cause("person", held.id, f"{held.who}'s hold ends at {_minute(held.until)}: {held.reason}")
        yield Wish(view.story.state, "record", "holds", "hold-ends-soon", (over,), (held.id, held.until), "none")
    times = int((situation.now - moment(held.at)) / hours(policy.holds.remind_hours))
    if times < 1:
        return
    since = spoken(situation.now - moment(held.at))
    because = (Cause("person", held.id, f"held by {held.who} for {since}: {held.reason}"),)
    yield Wish(view.story.state, "record", "holds", "hold-reminder", because, (held.id, str(times)), "none")


def _minute(at: str) -> str:
    return f"{at[:16].replace('T', ' ')} UTC"


def _soon(held: Word) -> datetime:
    """Return from when on it is said that a hold will end: a day before, or for its last quarter if that is less."""
    begun, end = moment(held.at), moment(held.until)
    return end - min(timedelta(days=1), (end - begun) / 4)
