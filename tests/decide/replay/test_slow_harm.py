"""Harm below the breaker's share of one pass: so many nodes of one class in a week are no series of single faults."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.decide.replay.replay_world import HOUR, clear, fault, pool

DAY = 24 * HOUR
NODES = 400
CLASSES = ("gpu.xid.79", "gpu.xid.95", "gpu.xid.48", "gpu.xid.119", "gpu.nvlink.down", "gpu.thermal")


def fleet():
    """Return nodes in racks of eight."""
    listed = pool(*(f"n{number:03}" for number in range(NODES)))
    return {name: replace(node, rack=f"r{index // 8}") for index, (name, node) in enumerate(listed.items())}


def each_day(days: int, count: int, classes=CLASSES[:1]) -> list[dict]:
    """So many nodes a day, one after the other, with one class a day in turn; each fault ends in an hour."""
    events, number = [], 0
    for day in range(days):
        for index in range(count):
            at, node = day * DAY + index * DAY / count, f"n{number % NODES:03}"
            name = classes[day % len(classes)]
            events += [fault(at, node, name), clear(at + HOUR, node, name)]
            number += 1
    return events


@pytest.mark.parametrize(
    ("days", "count", "classes"),
    [
        pytest.param(30, 4, CLASSES[:1], id="four nodes a day, 7 % a week"),
        pytest.param(14, 11, CLASSES[:1], id="eleven nodes a day, 19 % a week"),
        pytest.param(8, 60, CLASSES, id="sixty nodes a day, another class each day"),
    ],
)
def test_a_fault_that_comes_to_one_node_after_the_other_is_told_as_one(replayed, days, count, classes):
    story = replayed(each_day(days, count, classes), fleet())
    assert story["breaker_trips"], "a person is asked"
    assert f"{classes[0]} within 168 h" in story["breaker_trips"][0]["because"]
    reboots = story["totals"]["actions"].get("reboot", 0)
    assert reboots < 0.8 * days * count, "what waits is answered after `held_hours`, and not at once"


def test_what_a_fleet_has_in_an_ordinary_week_is_answered_node_by_node(replayed):
    """Llama 3: 148 GPU faults on 2,048 nodes in 54 days, about 1 % a week; here twice that, of one class."""
    story = replayed(each_day(56, 1), fleet())
    assert story["breaker_trips"] == []
    assert story["totals"]["actions"]["reboot"] == 56
