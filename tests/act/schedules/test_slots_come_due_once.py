"""What is due by the clock, whatever the clock does: each slot once, and one catch-up for all that was missed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.act.schedules.due_slots import (
    SLOT_BEGUN,
    SLOT_RAN,
    ScheduleHistory,
    ScheduleLine,
    SlotTask,
    compute_due_tasks,
)
from assay.model.ledger_entry import LedgerEntry
from assay.model.specs.schedules import FleetSchedule, find_next_slot, find_previous_slot

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def line(*, zone: str = "UTC", name: str = "scan", **schedule) -> ScheduleLine:
    return ScheduleLine(name, "compute", FleetSchedule(**{"does": "fabric-scan", **schedule}), zone)


class History:
    """The lines of slots, as a ledger would have them."""

    def __init__(self) -> None:
        self.pasts, self.ran = ScheduleHistory(), list[datetime]()

    def write(self, kind: str, task: SlotTask, **more) -> None:
        body = {"schedule": task.line.name, "part": task.line.target, "slot": task.slot.isoformat()}
        self.pasts.add_entry(LedgerEntry("x", "", kind, body=body | {"attempt": task.attempt} | more))

    def begin(self, task: SlotTask) -> None:
        self.write(SLOT_BEGUN, task)

    def carry_out(self, task: SlotTask) -> None:
        self.begin(task)
        self.write(SLOT_RAN, task, ended="done")
        self.ran.append(task.slot)

    def at(self, one: ScheduleLine, now: datetime) -> list[SlotTask]:
        return compute_due_tasks([one], self.pasts, now)


HOURLY = line(cron="0 * * * *")


def test_a_slot_is_due_from_its_moment_until_it_was_begun():
    history = History()
    [task] = history.at(HOURLY, NOON)
    assert task.slot == NOON
    history.carry_out(task)
    assert history.at(HOURLY, NOON + HOUR - timedelta(seconds=1)) == []
    assert [one.slot for one in history.at(HOURLY, NOON + HOUR)] == [NOON + HOUR]


def test_the_same_slot_has_the_same_id_for_every_controller_and_no_other_has_it():
    [one], [same] = History().at(HOURLY, NOON), History().at(HOURLY, NOON + timedelta(minutes=3))
    [other], [later] = History().at(line(cron="0 * * * *", name="x"), NOON), History().at(HOURLY, NOON + HOUR)
    assert one.id == same.id
    assert len({one.id, other.id, later.id}) == 3


def test_a_week_that_was_missed_is_made_up_for_once():
    history = History()
    history.carry_out(*history.at(HOURLY, NOON))
    [task] = history.at(HOURLY, NOON + timedelta(days=7, minutes=40))
    assert task.slot == NOON + timedelta(days=7)
    history.carry_out(task)
    assert history.at(HOURLY, NOON + timedelta(days=7, minutes=50)) == []


def test_what_need_not_be_made_up_for_is_left_out_when_it_is_late():
    hourly, history = line(cron="0 * * * *", catch_up=False), History()
    assert history.at(hourly, NOON + timedelta(minutes=16)) == []
    assert [one.slot for one in history.at(hourly, NOON + timedelta(minutes=15))] == [NOON]


def test_a_slot_that_was_left_in_the_middle_is_taken_up_again():
    history = History()
    [task] = history.at(HOURLY, NOON)
    history.begin(task)
    [again] = history.at(HOURLY, NOON + timedelta(minutes=50))
    assert (again.id, again.attempt, again.is_lost) == (task.id, 2, False)


def test_a_slot_that_was_left_is_lost_when_the_next_one_is_there():
    history = History()
    history.begin(*history.at(HOURLY, NOON))
    left, now = history.at(HOURLY, NOON + HOUR)
    assert (left.slot, left.is_lost) == (NOON, True)
    assert (now.slot, now.is_lost) == (NOON + HOUR, False)


def test_nobody_is_sent_a_fourth_time_into_a_slot_that_kills():
    history = History()
    for _ in range(3):
        [task] = history.at(HOURLY, NOON)
        history.begin(task)
    [last] = history.at(HOURLY, NOON)
    assert (last.attempt, last.is_lost) == (4, True)


def test_a_clock_that_ran_ahead_stops_nothing_when_it_is_set_right():
    history = History()
    history.carry_out(*history.at(HOURLY, NOON))
    history.carry_out(*history.at(HOURLY, NOON + timedelta(days=7)))
    assert history.at(HOURLY, NOON) == []
    assert [one.slot for one in history.at(HOURLY, NOON + HOUR)] == [NOON + HOUR]


@given(
    st.lists(st.integers(-10 * 24 * 60, 10 * 24 * 60), max_size=60),
    st.sampled_from([{"cron": "0 * * * *"}, {"cron": "17 */6 * * *"}, {"every_minutes": 15}, {"cron": "41 5 * * MON"}]),
    st.booleans(),
    st.integers(0, 90),
)
def test_however_the_clock_jumps_no_slot_comes_twice_and_each_moment_brings_one_at_most(jumps, when, catch_up, spread):
    one, history, now = line(**when, catch_up=catch_up, spread_minutes=spread), History(), NOON
    for jump in jumps:
        now += timedelta(minutes=jump)
        found = history.at(one, now)
        assert len(found) <= 1
        for task in found:
            assert task.slot <= now
            history.carry_out(task)
        assert history.at(one, now) == []
    assert len(history.ran) == len(set(history.ran))


def test_each_part_begins_later_by_a_time_of_its_own_within_the_spread():
    parts = [
        ScheduleLine("scan", f"p{n}", FleetSchedule(does="fabric-scan", cron="0 * * * *", spread_minutes=30), "UTC")
        for n in range(99)
    ]
    begins = [one.find_next_start(NOON) - NOON for one in parts]
    assert all(timedelta(0) < one <= HOUR + timedelta(minutes=30) for one in begins)
    assert len({one.offset for one in parts}) == 99
    assert max(one.offset for one in parts) < timedelta(minutes=30)
    assert [one.offset for one in parts] == [one.offset for one in parts]


@pytest.mark.parametrize(
    ("cron", "after", "slots"),
    [
        ("30 2 * * *", "2026-03-28T12:00+00:00", ["03-29T01:00", "03-30T00:30"]),  # 02:30 is not there that day
        ("30 2 * * *", "2026-10-24T12:00+00:00", ["10-25T00:30", "10-25T01:30", "10-26T01:30"]),  # and there twice
        ("0 0 29 2 *", "2026-01-01T00:00+00:00", ["02-28T23:00"]),
    ],
)
def test_a_cron_counts_in_the_time_of_its_site(cron, after, slots):
    schedule, at = (
        FleetSchedule(does="fabric-scan", cron=cron, time_zone="Europe/Berlin"),
        datetime.fromisoformat(after),
    )
    for slot in slots:
        at = find_next_slot(schedule, "UTC", at)
        assert at.isoformat()[5:16] == slot
        assert at.tzinfo is UTC


@given(
    st.integers(0, 2 * 365 * 86400),
    st.sampled_from([{"cron": "*/7 3 * * *"}, {"cron": "30 2 * * *"}, {"every_minutes": 35}]),
)
def test_the_slot_after_the_slot_before_is_the_slot_after(second, when):
    schedule = FleetSchedule(does="fabric-scan", time_zone="America/New_York", **when)
    at = NOON + timedelta(seconds=second)
    before, after = find_previous_slot(schedule, "UTC", at), find_next_slot(schedule, "UTC", at)
    assert before <= at < after
    assert find_next_slot(schedule, "UTC", before) == after
    assert find_previous_slot(schedule, "UTC", before) == before
