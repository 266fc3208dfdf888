"""Tells of nodes that were in use in so many slots that nobody has verified them for too long."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from assay.controller.clock.timetable import Line, Task
from assay.controller.desk import Desk
from assay.lifecycle.story import Story
from assay.lifecycle.when import moment, written
from assay.model.checks import Phase
from assay.model.entry import Entry, derived_id
from assay.model.outcome import Recorded
from assay.model.slots import MOMENT, slot_before

MISSED = "verification.missed"


def missed(desk: Desk, task: Task, stories: Sequence[Story]) -> list[Entry]:
    """Return a line for each of these nodes whose last verification is too many slots ago; one for each such time."""
    how, since = task.line.schedule.verification, _long_ago(task.line, task.slot)
    if how is None or since is None or not stories:
        return []
    outcomes: dict[str, list[Recorded]] = {story.node: [] for story in stories}
    for one in desk.ledger.latest(nodes=list(outcomes)):
        outcomes[one.outcome.node].append(one)
    last = {story.node: _verified_at(story, outcomes[story.node], how.phase) for story in stories}
    return [_line(desk, task, name, at, how.told_after) for name, at in last.items() if at < since]


def _long_ago(line: Line, slot: datetime) -> datetime | None:
    """Return the slot before which nobody may have been verified last."""
    at: datetime | None = slot
    for _ in range(line.schedule.verification.told_after if line.schedule.verification else 0):
        at = slot_before(line.schedule, line.zone, at - MOMENT) if at else None
    return at


def _verified_at(story: Story, outcomes: Iterable[Recorded], phase: Phase) -> datetime:
    """Return when the node was loaded and judged last; since it is where it is at the latest."""
    seen = [one.seen_at for one in outcomes if one.outcome.active and phase in one.outcome.phases]
    return max([moment(at) for at in seen if at] + [moment(story.since)])


def _line(desk: Desk, task: Task, name: str, at: datetime, slots: int) -> Entry:
    reason = f"it was in use in the last {slots} slots and more: not verified since {at:%Y-%m-%d %H:%M} UTC"
    body = {"schedule": task.line.name, "since": written(at), "reason": reason}
    return Entry(derived_id(MISSED, task.line.name, name, written(at)), desk.now, MISSED, name, body)
