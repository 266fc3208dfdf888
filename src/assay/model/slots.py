"""The slots of a schedule: the moments at which it asks for something. Pure; all times are in UTC.

In an hour that a time zone leaves out, a cron's slot is at its end; in one that comes twice it has both.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

from assay.model.schedule import Schedule, zone_of

MIDNIGHT = datetime(1970, 1, 1, tzinfo=UTC)
MOMENT = timedelta(microseconds=1)


def slot_before(schedule: Schedule, zone: str, at: datetime) -> datetime | None:
    """Return the newest slot up to and with `at`; None where a cron has none. `zone` is that of the document."""
    if schedule.every_minutes is not None:
        step = timedelta(minutes=schedule.every_minutes)
        return at - (at - MIDNIGHT) % step
    return _by_cron(schedule.cron or "", zone_of(schedule.time_zone or zone), at + MOMENT, back=True)


def slot_after(schedule: Schedule, zone: str, at: datetime) -> datetime | None:
    """Return the first slot later than `at`; None where a cron has none."""
    if schedule.every_minutes is not None:
        step = timedelta(minutes=schedule.every_minutes)
        return at - (at - MIDNIGHT) % step + step
    return _by_cron(schedule.cron or "", zone_of(schedule.time_zone or zone), at, back=False)


def _by_cron(cron: str, zone: tzinfo, at: datetime, *, back: bool) -> datetime | None:
    from croniter import CroniterBadDateError, croniter

    times = croniter(cron, at.astimezone(zone))
    try:
        found: datetime = times.get_prev(datetime) if back else times.get_next(datetime)
    except CroniterBadDateError:
        return None
    return found.astimezone(UTC)
