"""Harm below the breaker's share of one pass: so many nodes of one class in a week are no series of single faults."""

from __future__ import annotations

import random
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


def each_day(days: int, count: int, classes=CLASSES[:1], stride: int = 1) -> list[dict]:
    """So many nodes a day, one after the other, with one class a day in turn; each fault ends in an hour."""
    events, number = [], 0
    for day in range(days):
        for index in range(count):
            at, node = day * DAY + index * DAY / count, f"n{number * stride % NODES:03}"
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
    wide = [trip["because"] for trip in story["breaker_trips"] if ", all of rack" not in trip["because"]]
    used = min(days, len(classes))
    assert len(wide) == used, "a person is asked once for each class"
    assert f"20 of 400 serving nodes of pool a showed {classes[0]} within 168 h" in wide[0]
    assert story["totals"]["actions"].get("reboot", 0) < 20 * used, "nothing is repaired by reboot from then on"


def test_work_for_technicians_is_told_as_one_too(replayed):
    events = [fault(number * 960.0, f"n{number:03}", "bmc.unhealthy") for number in range(NODES)]
    story = replayed(events, fleet())
    assert story["totals"]["tickets"] < 20, "one ticket has all the others"
    whole = story["breaker_trips"][-1]
    assert "20 of 400 serving nodes of pool a showed bmc.unhealthy within 168 h" in whole["because"]
    assert len(whole["nodes"]) > 370
    assert "cordon" not in story["totals"]["actions"], "no node is closed for a technician's work"


def test_a_series_of_one_rack_is_told_though_it_is_little_of_the_pool(replayed):
    events = [event for day in range(3) for number in range(8) for event in happen(day, f"n{day * 8 + number:03}")]
    first, second, whole = replayed(events, fleet())["breaker_trips"]
    assert "all of rack lab1/r0" in first["because"]
    assert "all of rack lab1/r1" in second["because"]
    assert "24 of 400 serving nodes" in whole["because"], "the third rack makes 5 % of the pool"


def happen(day, node):
    return [fault(day * DAY, node, CLASSES[0]), clear(day * DAY + HOUR, node, CLASSES[0])]


def test_what_a_fleet_has_in_an_ordinary_week_is_answered_node_by_node(replayed):
    """Llama 3: 148 GPU faults on 2,048 nodes in 54 days, about 1 % a week; here twice that, of one class, anywhere."""
    story = replayed(each_day(56, 1, stride=37), fleet())
    assert story["breaker_trips"] == []
    assert story["totals"]["actions"]["reboot"] == 56


def each_week(counts: list[int], name: str = CLASSES[0], stride: int = 37) -> list[dict]:
    """So many nodes in each week, anywhere; each fault ends in an hour."""
    events, number = [], 0
    for week, count in enumerate(counts):
        for index in range(count):
            at, node = (week + index / count) * 7 * DAY, f"n{number * stride % NODES:03}"
            events += [fault(at, node, name), clear(at + HOUR, node, name)]
            number += 1
    return events


def test_what_is_much_for_this_fleet_is_told_though_the_policys_share_is_not_reached(replayed):
    quiet = [1, 0] * 15
    (trip,) = replayed(each_week([*quiet, 14, 14, 14]), fleet())["breaker_trips"]
    said, _, rate = trip["because"].partition("; asked by ")
    assert said == f"8 of 400 serving nodes of pool a showed {CLASSES[0]} within 168 h"
    history = "14 nodes had it in 11,200 node-weeks of the pool's own history"
    assert rate == f"the learnt rate, 8 of 400 nodes: {history}"
    assert trip["time"] < 31 * 7 * DAY, "in the first week"


def test_until_there_is_enough_history_the_policys_share_serves(replayed):
    (trip,) = replayed(each_week([1, 0, 1, 0, 14, 14, 30]), fleet())["breaker_trips"]
    assert "20 of 400 serving nodes" in trip["because"]
    assert "asked by the policy's 5 %, as " in trip["because"]
    assert trip["because"].endswith(" weeks) teach no rate yet")


@pytest.mark.slow
def test_a_fleet_that_slowly_gets_worse_does_not_teach_itself_that_harm_is_normal(replayed):
    """Each month one node more a week, for two years: history follows, and stops at the policy's share."""
    story = replayed(each_week([1 + week // 4 for week in range(104)]), fleet())
    (trip,) = story["breaker_trips"]
    assert "20 of 400 serving nodes" in trip["because"]
    assert "asked by the policy's 5 %, the most that history may teach: " in trip["because"]


def test_what_chance_does_to_a_fleet_in_two_years_is_no_series(replayed):
    chance = random.Random(43)
    counts = [sum(chance.random() < 0.01 for _ in range(NODES)) for _ in range(104)]
    assert max(counts) > 8, "twice the usual"
    assert replayed(each_week(counts), fleet())["breaker_trips"] == []
