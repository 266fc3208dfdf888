"""How a node leaves service and comes back, read off the policy, and how long that takes."""

from __future__ import annotations

import pytest

from assay.decide.plan.inputs import FleetFacts, MedianDuration
from assay.decide.plan.rollout_nodes import ServiceRoute, estimate_stays, find_shortest_route


@pytest.fixture
def policy(repository):
    return repository.declared().policy


def test_firmware_goes_through_zap_and_burn_in(policy) -> None:
    found = find_shortest_route(policy, "production", frozenset({"zap"}))
    assert found.repair == "zap"
    assert found.states[0] == found.states[-1] == "production"
    assert found.out_of_service == ("draining", "zap", "test")


@pytest.mark.parametrize(("root", "repair"), [("disk", "zap"), ("memory", "production-reboot")])
def test_a_setting_that_needs_a_restart_comes_by_zap_or_with_the_image(repository, root: str, repair: str) -> None:
    repository.spec("host:\n", f"host:\n  root: {root}\n").commit()
    made = repository.spec("iommu=pt", "iommu=off").plan()
    (way,) = made.work.ways
    assert way.route.repair == repair
    assert {name for wave in made.work.schedule.waves for name in wave.nodes} == {f"n{n:04}" for n in range(3, 17)}


def test_hardware_that_is_only_judged_takes_nobody_out(repository) -> None:
    assert repository.spec("fans: 10", "fans: 9").plan().work.schedule.waves == ()


def test_a_policy_without_a_way_keeps_its_nodes_waiting(repository) -> None:
    repository.policy("    entry: [zap]\n", "").commit()
    schedule = repository.firmware("01.05.11", "01.05.12").plan().work.schedule
    assert schedule.waves == ()
    assert schedule.waiting[0].why == ("the policy draws no way from production through a repair and back into service")


def test_a_held_node_waits_for_the_person_who_holds_it(repository, known) -> None:
    from dataclasses import replace

    from assay.decide.state.node_state import OperatorNote

    facts = known("n0005")
    story = replace(facts.node_states["n0005"], hold=OperatorNote("h", "ann", "a memory leak", ""))
    schedule = repository.firmware("01.05.11", "01.05.12").plan(FleetFacts({"n0005": story})).work.schedule
    assert [(one.nodes, one.why) for one in schedule.waiting] == [(("n0005",), "held by ann: a memory leak")]


def test_a_pool_with_no_room_left_waits_until_somebody_is_back(repository, out_of_service) -> None:
    facts = out_of_service("n0005", "n0006", "n0009", "n0010")
    schedule = repository.firmware("01.05.11", "01.05.12").plan(facts).work.schedule
    assert schedule.waves == ()
    (waiting,) = schedule.waiting
    assert len(waiting.nodes) == 10
    assert waiting.why == "pool h100-a has as many nodes out as may be; they come back first"


def test_recorded_stays_come_first_then_the_policy_and_what_is_left_is_assumed(policy) -> None:
    way = ServiceRoute(("production", "seatrial", "zap", "test", "production"), "zap")
    facts = FleetFacts(
        actions={"zap": MedianDuration(1.5, 7)},
        stays={"seatrial": MedianDuration(0.4, 12), "test": MedianDuration(30.0, 3)},
    )
    seatrial, zap, test = estimate_stays(policy, facts, way)
    assert (seatrial.hours, seatrial.basis, seatrial.sources) == (0.4, "recorded", ("median of 12 stays",))
    assert (zap.hours, zap.basis) == (2.0, "assumed")
    assert zap.sources[0] == "zap: median of 7"
    assert (test.hours, test.basis) == (30.0, "recorded")


def test_a_soak_that_grows_is_not_hidden_by_the_stays_so_far(policy) -> None:
    way = ServiceRoute(("production", "test", "production"), "test")
    (test,) = estimate_stays(policy, FleetFacts(stays={"test": MedianDuration(3.0, 40)}), way)
    assert (test.hours, test.basis) == (24.0, "policy")


def test_no_assumption_goes_unmarked(repository) -> None:
    made = repository.firmware("01.05.11", "01.05.12").plan()
    for stage in made.work.ways[0].stages:
        assert stage.basis != "recorded"
        assert stage.sources
        assert stage.basis == "policy" or "our own choice" in stage.sources[0]
