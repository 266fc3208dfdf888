"""The first wave of a rollout that customers hear of before is reserved in its scheduler until it leaves."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from assay.act.orders.operations import RESERVED, reserve_windows
from assay.act.rollouts.rollout_advance import list_first_waves
from assay.adapters.scheduler import PlannedWindow
from assay.model.specs.schedules import RolloutRules
from tests.act.quiet_site import Far
from tests.act.rollouts.rolling_fleet import RollingFleet
from tests.act.rollouts.test_rollouts_of_commits import finish


class ReservingScheduler(Far):
    """A scheduler that keeps the windows, or refuses them."""

    def __init__(self) -> None:
        super().__init__()
        self.windows: dict[str, PlannedWindow] = {}
        self.refusal = ""

    def reserve_windows(self, windows: Mapping[str, PlannedWindow]) -> dict[str, str]:
        self.windows |= windows
        return dict.fromkeys(windows, self.refusal) if self.refusal else {}


@pytest.fixture
def scheduler(rolling: RollingFleet) -> ReservingScheduler:
    """The scheduler of a fleet with a rollout of which customers hear 72 hours before."""
    rolling.far = ReservingScheduler()
    rolling.add_rules("{lead_hours: 72}")
    rolling.git.commit()
    rolling.set_version("2")
    rolling.turn()
    return rolling.far


def reserve(rolling: RollingFleet) -> PlannedWindow:
    """Let the controller take one round; return the window of the newest rollout."""
    context = rolling.context()
    reserve_windows(context, list(list_first_waves(context)))
    assert isinstance(rolling.far, ReservingScheduler)
    return rolling.far.windows[rolling.rollout.id]


def test_the_first_wave_is_reserved_from_its_beginning_on_and_no_more_once_it_leaves(
    rolling: RollingFleet, scheduler: ReservingScheduler
) -> None:
    begins = int((datetime.fromisoformat(rolling.rollout.started_at) + timedelta(hours=72)).timestamp())
    for _ in range(2):
        assert reserve(rolling) == PlannedWindow(("n1",), begins, begins + 24 * 3600)
    assert rolling.kinds().count("operation.reserved") == 1, "each answer is recorded once"
    assert rolling.rollout.members["n1"].reserved == RESERVED
    rolling.clock.at += timedelta(hours=72)
    assert reserve(rolling).nodes == ("n1",), "it has no order yet"
    rolling.turn()
    assert rolling.kinds().count("move") == 1
    assert reserve(rolling).nodes == ()
    finish(rolling)
    assert rolling.rollout.end_reason == "4 of 4 nodes proven"
    scheduler.windows.clear()
    rolling.clock.at += timedelta(days=2)
    with pytest.raises(KeyError):
        reserve(rolling)


def test_a_refusal_is_said_where_people_read_what_the_rollout_waits_for(
    rolling: RollingFleet, scheduler: ReservingScheduler
) -> None:
    from assay.act.loop.projections import read_node_states
    from assay.act.rollouts.rollout_advance import report_rollout

    def waits() -> str:
        context = rolling.context()
        states = list(read_node_states(context.ledger).values())
        report = report_rollout(context.fleet, context.ledger, states, rolling.rollout, context.clock.now())
        assert report.step
        return report.step.waits_for

    assert waits().endswith(" UTC")
    scheduler.refusal = "Access/permission denied"
    for _ in range(2):
        reserve(rolling)
    assert rolling.kinds().count("operation.reserved") == 1
    assert waits().endswith(" UTC; Access/permission denied")
    scheduler.refusal = ""
    reserve(rolling)
    assert waits().endswith(f" UTC; {RESERVED}")


@pytest.mark.parametrize("kind", ["rollout.paused", "rollout.aborted"])
def test_nothing_is_reserved_for_a_rollout_that_a_person_stops(
    rolling: RollingFleet, scheduler: ReservingScheduler, kind: str
) -> None:
    assert reserve(rolling).nodes == ("n1",)
    rolling.say(kind)
    assert reserve(rolling).nodes == ()


def test_a_rollout_that_begins_at_once_asks_the_scheduler_nothing(rolling: RollingFleet) -> None:
    rolling.far = ReservingScheduler()
    rolling.set_version("2")
    rolling.turn()
    with pytest.raises(KeyError):
        reserve(rolling)


def test_a_window_begins_when_waves_may_begin() -> None:
    rules = RolloutRules.model_validate(
        {"hours": {"from_hour": 8, "to_hour": 18, "days": ["mon", "fri"], "time_zone": "Asia/Kolkata"}}
    )
    friday = datetime(2026, 11, 27, 9, 3, 7, tzinfo=UTC)
    assert rules.find_open(friday) == friday
    assert rules.find_open(friday + timedelta(hours=6)) == datetime(2026, 11, 30, 2, 30, tzinfo=UTC)
    assert RolloutRules().find_open(friday) == friday
