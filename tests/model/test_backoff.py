"""Every delay between two attempts follows one rule, with numbers of its own."""

from __future__ import annotations

import pytest

from assay.act.actions import action
from assay.act.loop import background_worker
from assay.model.backoff import Backoff
from assay.model.specs.policy_sections import EffectRetryPolicy
from assay.node.agent import delivery
from assay.tell.messages import routes


def waits(backoff: Backoff, count: int) -> list[float]:
    return [round(backoff.wait_s(failures), 4) for failures in range(1, count + 1)]


def test_a_wait_doubles_up_to_the_longest() -> None:
    assert waits(Backoff((1.0,), longest_s=60), 8) == [1, 2, 4, 8, 16, 32, 60, 60]


def test_listed_waits_come_first_and_the_last_one_grows() -> None:
    assert waits(Backoff((3.0, 1.0), factor=3), 4) == [3, 1, 3, 9]


def test_many_failures_overflow_nothing() -> None:
    assert Backoff((1.0,), longest_s=60).wait_s(100_000) == 60
    assert Backoff((1.0,), factor=1).wait_s(100_000) == 1


def test_jitter_leaves_a_part_of_the_wait_to_chance() -> None:
    found = {Backoff((8.0,), jitter=0.5).wait_s(1) for _ in range(200)}
    assert min(found) >= 4
    assert max(found) <= 8
    assert len(found) > 100


@pytest.mark.parametrize(
    ("backoff", "expected"),
    [
        (background_worker.FAILURE_BACKOFF, [1, 2, 4, 8, 16, 32, 60, 60]),
        (routes.SINK_BACKOFF, [60, 120, 240, 480, 960, 1920, 3600, 3600]),
        (routes.REQUEST_BACKOFF, [0.2, 0.8, 3.2]),
        (action.POLL_BACKOFF, [0.1, 0.13, 0.169, 0.2197]),
        (EffectRetryPolicy(waits_minutes=[1, 4]).backoff, [60, 240, 240, 240]),
    ],
    ids=["controller", "ticket sink", "ticket request", "poll", "effect"],
)
def test_the_delays_are_as_they_were(backoff: Backoff, expected: list[float]) -> None:
    assert waits(backoff, len(expected)) == expected


def test_a_poll_waits_five_seconds_at_most() -> None:
    assert action.POLL_BACKOFF.wait_s(50) == 5


def test_the_agent_waits_between_half_and_all_of_its_delay() -> None:
    for failures, longest in enumerate([1, 2, 4, 8, 16, 32, 60, 60], 1):
        assert longest / 2 <= delivery.DELIVERY_BACKOFF.wait_s(failures) <= longest
