"""The simulation of searches: seeded, with the same planted faults for each method."""

from __future__ import annotations

import pytest

from bench.collective_peers import search_by_halving, search_groups, search_second_pass
from bench.collective_stages import FLIPPED, search_alone, search_rails, search_scale
from bench.collectives import plant_one, search_matchings, simulate


def test_most_bad_nodes_are_found_and_no_good_one_is_named() -> None:
    totals = simulate(64, lambda fabric: fabric.plant_nodes(3), search_matchings, 30)
    assert totals.planted == 90
    assert totals.found_percent >= 96
    assert totals.falsely_named <= 1


def test_slow_uplinks_are_found_in_two_and_a_half_minutes() -> None:
    totals = simulate(64, lambda fabric: fabric.plant_uplinks(3), search_matchings, 10)
    assert totals.found_percent >= 96
    assert totals.falsely_named <= 1
    assert totals.figures["minutes"] < 3


def test_a_healthy_fabric_has_nobody_to_name() -> None:
    totals = simulate(64, lambda _: None, search_matchings, 10)
    assert (totals.found, totals.falsely_named) == (0, 0)
    assert totals.figures["minutes"] < 2


@pytest.mark.parametrize("method", [search_second_pass, search_groups, search_by_halving])
def test_the_others_find_a_node_that_hangs_and_no_uplink(method) -> None:
    assert simulate(64, plant_one("hung"), method, 10).found_percent >= 70
    assert simulate(64, plant_one("uplink"), method, 10).found_percent == 0


def test_the_same_seed_gives_the_same_figures() -> None:
    figures = [simulate(64, plant_one("wrong"), search_matchings, 3).figures for _ in range(2)]
    assert figures[0] == figures[1]


def test_most_scale_faults_are_named_though_one_run_in_twenty_answers_wrong() -> None:
    totals = search_scale(16, FLIPPED, searches=100)
    assert totals.percent >= 85
    assert search_scale(16, 0.0, 1, searches=50).mean_runs < 10


def test_an_intermittent_node_is_told_from_its_adapters_and_an_adapter_from_its_node() -> None:
    for of, kind in (("node", "wrong"), ("adapter", "hung")):
        assert search_rails(of, kind, 2) == {"named": 100, "falsely": 0, "rounds": 6}


def test_the_gate_names_no_good_node() -> None:
    found = [search_alone(64, 3, seed) for seed in range(10)]
    assert sum(named for named, *_ in found) >= 20
    assert sum(falsely for _, falsely, _ in found) == 0
