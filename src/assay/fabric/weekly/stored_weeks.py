"""Which of the stored weeks of a fabric is the week before."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

APART = timedelta(days=6)
"""An evaluation that ended less long ago has most of its scans in common with this one."""
REMEMBERED = timedelta(days=16)


class StoredWeek(NamedTuple):
    """The end of an evaluated week, and the digest under which the evidence store has it."""

    at: datetime
    digest: str


def choose_week_before(stored: Iterable[StoredWeek], end: datetime) -> StoredWeek | None:
    """Return the newest stored week that ended at least `APART` before `end`, None without one."""
    return max((one for one in stored if end - one.at >= APART), default=None)


def forget_old_weeks(stored: Iterable[StoredWeek], end: datetime) -> list[StoredWeek]:
    """Return the weeks that a later evaluation may still be compared with."""
    return [one for one in sorted(stored) if timedelta() < end - one.at <= REMEMBERED]
