"""What a machine that asks for its boot script is to do: go on with an attempt, begin one, or wait because it loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile

from assay.act.boot.boot_attempts import BootAttempt
from assay.model.specs.provisioning_spec import Provisioning

LEAST_WAIT = timedelta(minutes=1)
MOST_WAIT = timedelta(minutes=30)
MOST_DOUBLINGS = 5


@dataclass(frozen=True, slots=True)
class NextBoot:
    """`attempt`: the one to go on with, None to begin one. `wait_s`: how long to wait instead, 0 if it may boot."""

    attempt: BootAttempt | None
    wait_s: int = 0


def decide_next_boot(attempts: Sequence[BootAttempt], provisioning: Provisioning, now: datetime) -> NextBoot:
    """Return what follows from a node's attempts, the oldest first.

    A machine that looped waits as long again as it has looped already. It may begin anew when the time of its attempt
    is over: twice that time after two loops in a row, and so on.
    """
    if not attempts:
        return NextBoot(None)
    newest, age, whole = attempts[-1], now - attempts[-1].started_at, _limit_age(provisioning)
    if loops := sum(1 for _ in takewhile(lambda one: has_looped(one, provisioning), reversed(attempts))):
        if age < whole * 2 ** min(loops - 1, MOST_DOUBLINGS):
            return NextBoot(newest, int(min(max(age, LEAST_WAIT), MOST_WAIT).total_seconds()))
        return NextBoot(None)
    return NextBoot(newest if is_open(newest, provisioning, now) else None)


def is_open(attempt: BootAttempt, provisioning: Provisioning, now: datetime) -> bool:
    """Whether a start is still under way."""
    return not attempt.failure and attempt.last_stage != "agent" and now - attempt.started_at < _limit_age(provisioning)


def has_looped(attempt: BootAttempt, provisioning: Provisioning) -> bool:
    """Whether a machine fetched its script more often in one attempt than it may."""
    return attempt.fetches > provisioning.most_fetches


def describe_loop(attempt: BootAttempt, fetches: int, now: datetime) -> str:
    """Return the reason of the failure, for people."""
    minutes = max(1, round((now - attempt.started_at).total_seconds() / 60))
    last = attempt.last_stage or "none"
    return f"boots in a loop: it fetched its script {fetches} times in {minutes} min, last stage {last}"


def _limit_age(provisioning: Provisioning) -> timedelta:
    return timedelta(minutes=provisioning.deadlines.agent)
