"""Waves: no limit is ever exceeded, every node goes once, and canaries go before anybody else."""

from __future__ import annotations

import time
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from assay.decide.rollouts.rollout_waves import RolloutCandidate, RolloutCapacity, WaveSchedule, schedule_waves

POOLS, RACKS, SPECS = ("a", "b"), ("r1", "r2", "r3"), ("x", "y")


@st.composite
def fleets(draw: st.DrawFn) -> tuple[list[RolloutCandidate], RolloutCapacity]:
    kinds = st.tuples(*map(st.sampled_from, (POOLS, RACKS, SPECS)), st.sampled_from((1.0, 24.0)), st.booleans())
    drawn = draw(st.lists(kinds, max_size=40))
    nodes = [
        RolloutCandidate(f"n{number:02}", pool, ("lab", rack), spec, hours, restarts)
        for number, (pool, rack, spec, hours, restarts) in enumerate(drawn)
    ]
    room = RolloutCapacity(
        {pool: draw(st.integers(-1, 6)) for pool in POOLS},
        {("lab", rack): draw(st.integers(-1, 3)) for rack in RACKS},
        draw(st.integers(1, 4)),
    )
    return nodes, room


def went(made: WaveSchedule) -> list[str]:
    return [name for wave in made.waves for name in wave.nodes]


@given(fleets())
def test_every_node_goes_once_or_waits_for_a_reason(fleet) -> None:
    nodes, room = fleet
    made = schedule_waves(nodes, room)
    waiting = [name for one in made.waiting for name in one.nodes]
    assert sorted([*went(made), *waiting]) == sorted(one.node for one in nodes)
    by_name = {one.node: one for one in nodes}
    assert all(min(room.pools[by_name[n].pool], room.racks[by_name[n].rack]) < 1 for n in waiting)


@given(fleets())
def test_no_wave_exceeds_a_limit(fleet) -> None:
    nodes, room = fleet
    by_name = {one.node: one for one in nodes}
    for wave in schedule_waves(nodes, room).waves:
        members = [by_name[name] for name in wave.nodes]
        assert all(count <= room.pools[pool] for pool, count in Counter(one.pool for one in members).items())
        assert all(count <= room.racks[rack] for rack, count in Counter(one.rack for one in members).items())
        assert wave.pools == Counter(one.pool for one in members)


@given(fleets())
def test_one_of_each_spec_and_pool_goes_before_any_other(fleet) -> None:
    nodes, room = fleet
    made, by_name = schedule_waves(nodes, room), {one.node: one for one in nodes}
    seen: set[tuple[str, str]] = set()
    canaries_over = False
    for wave in made.waves:
        assert not (wave.canary and canaries_over)
        canaries_over = not wave.canary
        kinds = Counter((by_name[name].spec, by_name[name].pool) for name in wave.nodes)
        assert not wave.canary or all(count == 1 and kind not in seen for kind, count in kinds.items())
        assert wave.canary or set(kinds) <= seen
        seen |= set(kinds)


@given(fleets())
def test_a_wave_lasts_until_its_last_node_is_back_and_starts_no_more_an_hour_than_it_may(fleet) -> None:
    nodes, room = fleet
    by_name = {one.node: one for one in nodes}
    for wave in schedule_waves(nodes, room).waves:
        members = [by_name[name] for name in wave.nodes]
        restarts = sum(one.restarts for one in members)
        assert restarts <= room.restarts_per_hour * (wave.hours - max(one.hours for one in members) + 1)
        assert wave.node_hours == sum(one.hours for one in members)


@given(fleets())
def test_no_wave_is_empty(fleet) -> None:
    assert all(wave.nodes for wave in schedule_waves(*fleet).waves)


def test_racks_take_turns() -> None:
    nodes = [RolloutCandidate(f"n{i}", "a", ("lab", f"r{i // 4}"), "x", 1.0) for i in range(8)]
    made = schedule_waves(nodes, RolloutCapacity({"a": 2}, {("lab", "r0"): 2, ("lab", "r1"): 2}, 6))
    assert [wave.nodes for wave in made.waves][:2] == [("n0",), ("n1", "n4")]


def test_ten_thousand_nodes_one_at_a_time_are_scheduled_at_once() -> None:
    nodes = [RolloutCandidate(f"n{i}", "a", ("lab", f"r{i // 8}"), "x", 1.0) for i in range(10_000)]
    start = time.process_time()
    made = schedule_waves(nodes, RolloutCapacity({"a": 1}, {one.rack: 1 for one in nodes}, 6))
    assert len(made.waves) == 10_000
    assert time.process_time() - start < 2  # 0.1 s on an idle machine


def test_a_node_with_two_warnings_is_no_canary_and_goes_first_then() -> None:
    nodes = [
        RolloutCandidate(
            f"n{number}", "a", ("lab", f"r{number % 3}"), "x", 1.0, warnings={0: 2, 5: 3, 4: 1}.get(number, 0)
        )
        for number in range(9)
    ]
    room = RolloutCapacity({"a": 3}, {("lab", f"r{rack}"): 3 for rack in range(3)}, 9)
    first, second, *_ = schedule_waves(nodes, room).waves
    assert (first.canary, first.nodes) == (True, ("n1",))
    assert second.nodes[:2] == ("n0", "n5")
