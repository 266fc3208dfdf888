"""When each schedule ran last and runs next, and whether a slot is late."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from assay.act.schedules.due_slots import ScheduleHistory, ScheduleLine, compute_due_tasks, list_schedule_lines
from assay.act.schedules.slot_runner import read_schedule_history
from assay.model.fleet import Fleet
from assay.tell.metrics import families
from assay.tell.metrics.family import Series
from assay.tell.metrics.metric_source import MetricSource


@dataclass(frozen=True, slots=True)
class DueTimes:
    """What holds for one line from `computed_at` until its `next_start`: since when a slot is due, None if none is.

    `may_lapse`: after a while it is too late for that slot.
    """

    computed_at: datetime
    next_start: datetime | None
    newest_slot: datetime | None
    due_since: datetime | None
    may_lapse: bool

    def holds(self, now: datetime, newest_slot: datetime | None) -> bool:
        """Whether these times are still right: no slot began, none has lapsed, and the next one is not there."""
        is_before_next = self.next_start is None or now < self.next_start
        is_same = newest_slot == self.newest_slot and not self.may_lapse
        return is_same and self.computed_at <= now and is_before_next


class ScheduleTimes:
    """Computes the times of all schedules; what cron expressions say is kept until it changes."""

    def __init__(self) -> None:
        self._fleet: Fleet | None = None
        self._lines: list[ScheduleLine] = []
        self._times: dict[tuple[str, str], DueTimes] = {}

    def series(self, source: MetricSource) -> Iterator[Series]:
        """Yield the series of schedules."""
        if self._fleet is not source.context.fleet:
            self._fleet, self._times = source.context.fleet, {}
            self._lines = list(list_schedule_lines(self._fleet))
        history = read_schedule_history(source.context.ledger)
        for line in self._lines:
            labels, times = (line.name, line.target), self._find_times(line, history, source.now)
            if (ended_s := source.counts.slot_ends.get(labels)) is not None:
                yield Series(families.SCHEDULE_LAST, labels, max(0.0, source.now_s - ended_s))
            if times.next_start:
                yield Series(families.SCHEDULE_NEXT, labels, (times.next_start - source.now).total_seconds())
            late_s = (source.now - times.due_since).total_seconds() if times.due_since else 0.0
            yield Series(families.SCHEDULE_LATE, labels, max(0.0, late_s))

    def _find_times(self, line: ScheduleLine, history: ScheduleHistory, now: datetime) -> DueTimes:
        newest = history.get(line).find_newest()
        known = self._times.get((line.name, line.target))
        if known is None or not known.holds(now, newest):
            due = [task for task in compute_due_tasks([line], history, now) if task.attempt == 1]
            since = min((task.slot + line.offset for task in due), default=None)
            may_lapse = since is not None and not line.schedule.catch_up
            known = DueTimes(now, line.find_next_start(now), newest, since, may_lapse)
            self._times[line.name, line.target] = known
        return known
