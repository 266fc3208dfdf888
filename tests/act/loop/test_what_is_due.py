"""Whose turn it is to be looked at, and what a lane does with trouble."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.act.loop.background_worker import FAILURE_BACKOFF, BackgroundWorker, FailureLog, IntervalThrottle
from assay.act.schedules.poll_schedule import (
    MAX_SLICES,
    MIN_SLICE_NODES,
    PollSchedule,
    find_max_evidence_age_s,
    find_unscheduled_fabrics,
    read_poll_intervals,
)
from assay.declare.loader import load_fleet
from assay.model.errors import AssayError
from assay.model.specs.policy_sections import LifecycleState, PhaseRequirement
from tests.support.places import ROOT

FLEET = load_fleet(ROOT)
NOW = 1_800_000_000.0


def of(count: int, every_s: float = 300.0) -> dict[str, float]:
    return {f"n{number:05}": every_s for number in range(count)}


def test_who_was_never_looked_at_is_due_and_who_was_just_looked_at_is_not():
    rota = PollSchedule(of(3), {"n00001": NOW - 10}, NOW)
    assert rota.due(NOW) == ["n00000", "n00002"]
    rota.mark_observed(["n00000", "n00002"], NOW)
    assert rota.due(NOW + 289) == []
    assert rota.due(NOW + 290) == ["n00001"]
    assert rota.due(NOW + 300) == ["n00000", "n00001", "n00002"]


def test_news_make_it_a_nodes_turn():
    rota = PollSchedule(of(3), dict.fromkeys(of(3), NOW), NOW)
    rota.mark_due({"n00002", "a stranger"})
    assert rota.due(NOW) == ["n00002"]


def test_news_wait_no_longer_than_a_minute_for_a_round():
    assert PollSchedule(of(3, every_s=1800.0), {}, NOW).gap_s == 60.0
    assert PollSchedule(of(3, every_s=5.0), {}, NOW).gap_s == 5.0


@given(back=st.floats(0, 10 * 86400), slices=st.sampled_from([1, 4 * MIN_SLICE_NODES]))
def test_a_clock_that_is_put_back_keeps_nobody_waiting_for_longer_than_an_interval(back, slices):
    every = of(slices)
    rota = PollSchedule(every, dict.fromkeys(every, NOW), NOW)
    rota.due(NOW - back)
    assert set(rota.due(NOW - back + 300)) == every.keys()


def test_a_large_fleet_is_spread_over_the_interval_and_nobody_is_left_out():
    every = of(10_000)
    rota, turns = PollSchedule(every, {}, NOW), []
    rota.mark_observed(rota.due(NOW), NOW)
    assert rota.gap_s == 300 / MAX_SLICES
    for slice_ in range(1, MAX_SLICES + 1):
        names = rota.due(NOW + slice_ * rota.gap_s)
        rota.mark_observed(names, NOW + slice_ * rota.gap_s)
        turns.append(len(names))
    assert sum(turns) == 10_000
    assert max(turns) < 1_200


def test_a_fleet_that_is_read_again_keeps_its_turns():
    rota = PollSchedule(of(2), dict.fromkeys(of(2), NOW), NOW)
    rota.replace_nodes(of(3), {}, NOW + 10)
    assert rota.due(NOW + 10) == ["n00002"]


def test_each_pool_is_looked_at_as_often_as_its_schedule_says_unless_somebody_says_otherwise():
    names = list(FLEET.nodes)
    assert set(read_poll_intervals(FLEET, names, None, 1.0).values()) == {300.0}
    assert set(read_poll_intervals(FLEET, names, 20.0, 1.0).values()) == {20.0}
    assert find_unscheduled_fabrics(FLEET, list(FLEET.nodes.values())) == set()


def test_evidence_is_renewed_before_it_is_too_old_for_the_state():
    wants = [PhaseRequirement(phase="test", fresh_hours=24), PhaseRequirement(phase="production", fresh_hours=1)]
    assert find_max_evidence_age_s(LifecycleState(summary="", requires=wants)) == 1800
    assert find_max_evidence_age_s(LifecycleState(summary="")) is None
    rota = PollSchedule(of(1, 86400.0), {"n00000": NOW}, NOW)
    rota.limit_interval("n00000", 1800, NOW)
    assert rota.due(NOW + 1800) == ["n00000"]


def test_a_thing_has_its_time_again_after_a_while_or_when_that_is_said():
    turns = IntervalThrottle()
    assert [turns.is_due("a", 10, at) for at in (0, 9, 10, 19, 5)] == [True, False, True, False, True]
    turns.reset("a")
    assert turns.is_due("a", 10, 6)


def test_what_fails_is_told_once_and_left_alone_for_longer_each_time():
    said: list[str] = []
    lane = BackgroundWorker("looking", said.append)
    down = True

    def work() -> None:
        if down:
            raise AssayError("the disk is full")

    for _ in range(2):
        lane.start(work)
        lane.join(5)
        assert not lane.is_free
        lane._failures._resume_at = 0.0
    down = False
    lane.start(work)
    lane.join(5)
    assert said == ["looking: the disk is full", "looking: works again"]
    assert lane.is_free


def test_a_mistake_of_ours_is_told_and_ends_nothing():
    said: list[str] = []
    lane = BackgroundWorker("looking", said.append)
    lane.start(lambda: 1 / 0)
    lane.join(5)
    assert said == ["looking: internal error: ZeroDivisionError: division by zero"]


def test_a_lane_that_is_busy_is_not_free():
    lane, go = BackgroundWorker("looking", print), threading.Event()
    lane.start(lambda: go.wait(10))
    assert lane.is_busy
    assert not lane.is_free
    go.set()
    lane.join(5)
    assert lane.is_free


def test_patience_grows_to_a_bound_and_ends_with_success():
    failures = FailureLog()
    waits = []
    for number in range(1, 10):
        before = time.monotonic()
        failures.record_failure("down")
        waits.append(FAILURE_BACKOFF.wait_s(number))
        assert not failures.may_retry
        assert failures._resume_at - before == pytest.approx(waits[-1], abs=0.5)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert failures.record_success()
    assert failures.may_retry
    assert not failures.record_success()
