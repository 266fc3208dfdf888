"""The simulation of searches: seeded, with the same planted faults for each method."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # bench/ is no part of the package

from bench.collective_peers import search_by_halving, search_groups, search_second_pass  # noqa: E402 — see above
from bench.collectives import plant_one, search_matchings, simulate  # noqa: E402


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
