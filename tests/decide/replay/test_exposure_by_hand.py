"""What policies cost, counted by hand: time out, time served with open faults, and tickets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.model.specs.lifecycle_policy import LifecyclePolicy
from tests.decide.replay.replay_world import HOUR, clear, fault, moves, pool

TICK = {"time": 48 * HOUR, "node": "n9", "event": "fault", "fault": "gpu.xid.13"}
"""A harmless event that lets the replay go on until then."""


@pytest.fixture(scope="module")
def nothing(rules):
    """The policy that records every fault and does nothing."""
    plain = rules.policy.model_dump(exclude_unset=True)
    plain |= {"name": "nothing", "faults": {"everything": {"timing": "record", "remedy": "none"}}}
    return replace(rules, policy=LifecyclePolicy.model_validate(plain), lines={})


def test_doing_nothing_serves_with_the_open_fault_for_as_long_as_it_lasts(replayed, nothing):
    story = replayed([fault(0, "n1", "gpu.xid.79"), clear(12 * HOUR, "n1", "gpu.xid.79"), TICK], by=nothing)
    costs = story["costs"]
    assert moves(story) == []
    assert costs["out_node_hours"] == 0
    assert costs["catastrophic_node_hours"] == 12
    assert costs["degraded_node_hours"] == 0
    assert costs["tickets"] == 0
    assert story["node_hours"]["all"] == 2 * 48
    assert story["node_hours"]["serving_without_fault"] == 2 * 48 - 12


def test_what_is_answered_at_once_is_no_exposure(replayed):
    story = replayed([fault(0, "n1", "gpu.xid.79"), clear(12 * HOUR, "n1", "gpu.xid.79"), TICK])
    costs = story["costs"]
    assert costs["out_node_hours"] == 12.5, "twelve hours, and half an hour of suites"
    assert costs["catastrophic_node_hours"] == 0


def test_a_cordoned_node_waits_for_its_job_and_is_counted_apart(replayed):
    events = [
        fault(0, "n1", "gpu.thermal", in_use=True),
        {"time": 5 * HOUR, "node": "n1", "event": "use", "in_use": False},
        clear(6 * HOUR, "n1", "gpu.thermal"),
        TICK,
    ]
    story = replayed(events)
    assert story["node_hours"]["cordoned_in_use"] == 5
    assert story["costs"]["degraded_node_hours"] == 5
    assert story["costs"]["cordoned_idle_node_hours"] == 0
    assert story["costs"]["out_node_hours"] == 1 + 3 + 24 + 3 / 60, "people, zap, burn-in, and three looks"


def test_a_rack_that_is_one_machine_is_cordoned_idle(replayed):
    names = [f"n{number:02}" for number in range(18)]
    listed = {name: replace(node, spec="gb200-nvl72") for name, node in pool(*names).items()}
    more = pool(*(f"m{number:02}" for number in range(40)), rack="r2")
    shown = [fault(60 * number, names[number], "gpu.missing") for number in range(3)]
    story = replayed([*shown, {**TICK, "node": "m00"}], listed | more)
    hours = story["node_hours"]
    assert hours["out"] + hours["serving_with_catastrophic_fault"] + hours["cordoned_idle"] > 3 * 47
    assert sum(hours[name] for name in hours if name not in ("all", "cordoned_in_use")) == pytest.approx(hours["all"])


def test_severities_are_the_catalogues_and_the_worst_of_a_node_counts(replayed, nothing):
    events = [
        fault(0, "n1", "gpu.thermal"),
        fault(2 * HOUR, "n1", "gpu.xid.79"),
        clear(5 * HOUR, "n1", "gpu.xid.79"),
        clear(9 * HOUR, "n1", "gpu.thermal"),
        fault(9 * HOUR, "n1", "gpu.xid.13"),
        TICK,
    ]
    story = replayed(events, by=nothing)
    assert (story["costs"]["degraded_node_hours"], story["costs"]["catastrophic_node_hours"]) == (2 + 4, 3)
    assert story["node_hours"]["serving_with_informational_fault"] == 48 - 9


def test_a_link_that_flaps_is_an_exposure_only_from_its_third_time_on(replayed, nothing):
    flaps = [fault(number * 600, "n1", "ib.link.flap") for number in range(3)]
    story = replayed([*flaps, clear(HOUR, "n1", "ib.link.flap"), TICK], by=nothing)
    assert story["costs"]["degraded_node_hours"] == pytest.approx(40 / 60, abs=0.001)


def test_what_a_limit_holds_back_is_an_exposure_of_the_smaller_limit(replayed, rules):
    names = [f"n{number}" for number in range(8)]
    listed = pool(*names[:4]) | pool(*names[4:], rack="r2")
    events = [fault(HOUR * number, name, "gpu.missing") for number, name in enumerate(names[:3])]
    events += [clear(40 * HOUR, name, "gpu.missing") for name in names[:3]]
    limits = rules.policy.limits.model_copy(update={"pool_percent": 13})
    tight = replace(rules, policy=rules.policy.model_copy(update={"limits": limits}))
    wide, narrow = replayed(events, listed)["costs"], replayed(events, listed, by=tight)["costs"]
    assert narrow["out_node_hours"] < wide["out_node_hours"]
    assert (wide["catastrophic_node_hours"], narrow["catastrophic_node_hours"]) == (38, 39 + 38)


def test_tickets_are_counted(replayed):
    costs = replayed([fault(0, "n1", "gpu.thermal"), clear(HOUR, "n1", "gpu.thermal")])["costs"]
    assert costs["tickets"] == 1


def test_doing_nothing_loses_on_exposure_and_wins_only_on_time_out(replayed, nothing):
    nodes = [f"n{number:02}" for number in range(40)]
    events = []
    for number, name in enumerate(nodes[:12]):
        kind = "gpu.xid.79" if number % 2 else "ib.link.down"
        events += [fault(number * 9 * HOUR, name, kind), clear((number * 9 + 20) * HOUR, name, kind)]
    acting, idle = replayed(events, pool(*nodes)), replayed(events, pool(*nodes), by=nothing)
    lower = {name for name, cost in acting["costs"].items() if cost < idle["costs"][name]}
    assert lower == {"catastrophic_node_hours", "degraded_node_hours"}
    higher = {name for name, cost in acting["costs"].items() if cost > idle["costs"][name]}
    assert higher == {"out_node_hours", "tickets"}


def test_a_history_in_seconds_names_no_year(replayed):
    story = replayed([fault(40 * 24 * HOUR, "n1", "gpu.xid.79"), clear(40 * 24 * HOUR + 600, "n1", "gpu.xid.79")])
    said = " ".join(one["because"] for one in story["decisions"])
    assert "1970" not in said
    assert "40 d 01:00:00" in said
