"""The storms of public reports, as far as events can tell them: no wrong action in any."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.model.specs.node_settings import NodeSettings
from tests.decide.replay.replay_world import HOUR, clear, fault, moves, pool


def test_672_calls_for_support_out_of_one_xid_were_wrong_and_none_is_made_here(replayed):
    """NVIDIA NVSentinel issues 1710 and 1712: 168,924 XID 45 on three nodes of 288 within two days."""
    listed = pool(*(f"n{number:03}" for number in range(288)))
    storm = [fault(number * 24.0, f"n{number % 3:03}", "gpu.xid.45", in_use=True) for number in range(672 * 10)]
    story = replayed(storm, listed)
    assert moves(story) == []
    assert (story["totals"]["actions"], story["totals"]["tickets"], story["breaker_trips"]) == ({}, 0, [])
    assert len(story["decisions"]) == 3, "noted once on each node"


@pytest.mark.parametrize("repeats", [17_000, pytest.param(170_000, marks=pytest.mark.slow)])
def test_repeats_of_one_fault_are_one_action_however_many_they_are(replayed, repeats):
    """NVIDIA NVSentinel issue 1120: 800,000 XID 95 out of 29 causes."""
    shown = [fault(number * 850 / repeats, "n1", "gpu.xid.95", part="gpu3") for number in range(repeats)]
    story = replayed([*shown, clear(900, "n1", "gpu.xid.95")])
    assert [to for _, _, to, _ in moves(story)] == ["production-gpu-reset", "production"]
    assert story["totals"]["actions"]["gpu-reset"] == 1


def test_a_pending_move_that_is_blocked_names_what_blocks_it_and_does_nothing_else(replayed):
    """The incident of a soft lockup whose node held single replicas: pending never became active by itself."""
    events = [fault(0, "n1", "gpu.xid.109", in_use=True), fault(40 * HOUR, "n1", "gpu.xid.109", in_use=True)]
    story = replayed(events)
    assert moves(story) == [(0, "production", "production-gpu-reset", "pending")]
    assert story["decisions"][0]["blockers"] == ["customer work"]
    (nag,) = [one for one in story["decisions"] if one["rule"].endswith(" still-waiting")]
    assert (nag["time"], nag["timing"], nag["blockers"]) == (24 * HOUR, "record", ["customer work"])
    assert nag["because"].startswith("has waited 24 h to go to production-gpu-reset, for customer work")
    assert story["totals"]["actions"] == {"cordon": 1}
    freed = [*events, {"time": 41 * HOUR, "node": "n1", "event": "use", "in_use": False}]
    assert moves(replayed(freed))[1] == (41 * HOUR, "production", "production-gpu-reset", "immediate")


def test_workloads_do_not_come_back_before_the_verification_has_ended(replayed):
    events = [fault(0, "n1", "host.kernel.deadlock", in_use=True), clear(60, "n1", "host.kernel.deadlock")]
    story = replayed(events)
    assert moves(story)[1][0] == 900 + 2700 + 1800, "drained, cycled, verified"
    assert story["totals"]["actions"]["uncordon"] == 1


def test_a_pool_whose_collector_dies_loses_no_node(replayed):
    listed = pool(*(f"n{number}" for number in range(40)))
    story = replayed([fault(0, name, "telemetry.lost") for name in listed], listed)
    assert (moves(story), story["totals"]["actions"]) == ([], {})


def test_a_thousand_nodes_that_fail_together_trip_the_breaker_at_once_and_stay_held_while_it_lasts(replayed):
    listed = pool(*(f"n{number}" for number in range(1000)))
    story = replayed([fault(0, name, "ib.link.down", part="mlx5_0") for name in listed], listed)
    assert len(story["breaker_trips"]) == 1
    assert "ib.link.down on 1000" in story["breaker_trips"][0]["because"]
    assert (moves(story), story["totals"]["actions"]) == ([], {"cordon": 1}), "half of what the rack may lose"


@pytest.mark.parametrize("in_use", [True, False])
def test_a_switch_that_is_down_for_hours_moves_nobody_and_who_is_left_then_is_answered(replayed, in_use):
    listed = pool(*(f"n{number:03}" for number in range(100)))
    shown = [fault(0, name, "ib.link.down", in_use=in_use) for name in listed]
    back = [clear(3 * HOUR + number, name, "ib.link.down") for number, name in enumerate(list(listed)[:98])]
    story = replayed([*shown, fault(2 * HOUR, "n007", "gpu.thermal"), *back], listed)
    (trip,) = story["breaker_trips"]
    assert (trip["time"], len(trip["nodes"])) == (0, 100)
    assert [when for when, *_ in moves(story, "n007")][:1] == [2 * HOUR], "what is not of the wave is answered"
    others = [when for node in listed if node != "n007" for when, *_ in moves(story, node)]
    assert min(others) in (3 * HOUR + 94, 3 * HOUR + 95), "with 5 of 100 left it is no wave any more"


def test_a_cordon_does_not_outlive_what_it_was_for(replayed):
    """NVIDIA NVSentinel issues 363, 458 and 1854: a node stays cordoned after its fault is over."""
    for node, name in enumerate(("gpu.thermal", "gpu.pcie.degraded", "ib.link.down")):
        events = [fault(0, f"n{node}", name, in_use=True), clear(600, f"n{node}", name)]
        story = replayed([*events, {"time": 7200, "node": f"n{node}", "event": "use", "in_use": False}])
        assert [timing for *_, timing in moves(story)] == ["pending"]
        assert story["totals"]["actions"] == {"cordon": 1, "uncordon": 1}
        assert story["totals"]["seconds_out"] == 0


@pytest.mark.parametrize("name", ["firmware.drift", "gpu.pcie.degraded", "ib.link.down", "gpu.xid.79"])
def test_a_bad_merge_or_a_dead_switch_moves_nobody_and_trips_within_one_pass(replayed, name):
    listed = pool(*(f"n{number:03}" for number in range(100)))
    shown = [fault(1000, node, name) for node in listed]
    story = replayed([*shown, *(clear(1300, node, name) for node in listed)], listed)
    actions = {} if name == "firmware.drift" else {"cordon": 1, "uncordon": 1}
    assert (moves(story), story["totals"]["actions"], story["totals"]["seconds_out"]) == ([], actions, 0)
    if name != "firmware.drift":  # which asks for tickets only, and holds nobody back
        (trip,) = story["breaker_trips"]
        assert (trip["time"], len(trip["nodes"])) == (1000, 100)
        assert f"100 of 100 serving nodes of pool a show faults within 10 min ({name} on 100" in trip["because"]


def test_nothing_is_replayed_when_the_breaker_is_reset(replayed):
    """NVIDIA NVSentinel issue 450: a breaker that was reset carried out all that it had held back."""
    listed = pool(*(f"n{number:03}" for number in range(100)))
    shown = [fault(0, node, "gpu.xid.79") for node in listed]
    later = fault(5 * HOUR, "n007", "gpu.xid.48")
    made = [(when, to) for when, _, to, _ in moves(replayed([*shown, later], listed))]
    assert made[0] == (5 * HOUR, "production-gpu-reset"), "what is of another class is answered"
    rest = [when for when, to in made[1:] if to == "production-reboot"]
    assert min(rest) >= 24 * HOUR, "what only a log told waits for a day"
    assert all(rest.count(when) <= 2 for when in rest), "and is then answered as the limits allow"


@pytest.mark.slow
def test_a_thousand_nodes_are_brought_up_at_once_and_trip_nothing(replayed):
    start = NodeSettings.model_construct(lifecycle_start="seatrial")
    listed = {name: replace(node, settings=start) for name, node in pool(*(f"n{i:04}" for i in range(1000))).items()}
    story = replayed([fault(0, "n0000", "gpu.xid.13"), clear(1, "n0000", "gpu.xid.13")], listed)
    assert story["breaker_trips"] == []
    last = {one["node"]: one["to"] for one in story["decisions"] if one["timing"] == "immediate"}
    assert list(last.values()) == ["production"] * 1000
    assert {one["remedy"] for one in story["decisions"] if one["timing"] == "record"} <= {"none"}
