"""Rounds of pairs: no pair twice, nobody twice in a round, and other leaves wherever there are other leaves."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.validate.collectives.fabric_map import FabricMap
from assay.validate.collectives.rounds import plan_screening
from tests.validate.collectives.searched_fabrics import fabric_of

UNITS = st.lists(st.integers(1, 9), min_size=1, max_size=6)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(units=UNITS, seed=st.integers(0, 999), data=st.data())
def test_any_free_nodes_are_matched(units: list[int], seed: int, data: st.DataObject) -> None:
    fabric = fabric_of(units, domain=data.draw(st.sampled_from([0, 2])))
    nodes = data.draw(st.lists(st.sampled_from(sorted(fabric.nodes)), unique=True))
    rounds = plan_screening(fabric, nodes, seed)
    pairs = [pair for planned in rounds for pair in planned.pairs]
    assert len(set(pairs)) == len(pairs), "no pair twice"
    for planned in rounds:
        inside = [name for pair in planned.pairs for name in pair]
        assert len(set(inside)) == len(inside), "nobody twice in a round"
        assert set(inside) <= set(nodes)
    if len(nodes) > 1:
        assert len(rounds[0].pairs) == len(nodes) // 2, "at most one is left over in the first round"
    assert rounds == plan_screening(fabric, nodes, seed), "the same seed gives the same rounds"


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(units=UNITS, seed=st.integers(0, 999))
def test_the_first_round_crosses_leaves_as_often_as_possible(units: list[int], seed: int) -> None:
    fabric = fabric_of(units)
    rounds = plan_screening(fabric, list(fabric.nodes), seed)
    pairs = rounds[0].pairs if rounds else ()
    across = sum(fabric.unit_of(a) != fabric.unit_of(b) for a, b in pairs)
    assert across == min(sum(units) // 2, sum(units) - max(units))


def test_the_third_round_stays_under_each_leaf() -> None:
    fabric = fabric_of([8, 8, 7])
    last = plan_screening(fabric, list(fabric.nodes), 1)[2]
    assert all(fabric.unit_of(a) == fabric.unit_of(b) for a, b in last.pairs)
    assert len(last.pairs) == 11


def test_under_a_leaf_nodes_of_other_nvlink_domains_are_preferred() -> None:
    fabric = fabric_of([8, 8], domain=4)
    last = plan_screening(fabric, list(fabric.nodes), 1)[2]
    assert not any(fabric.share_domain(a, b) for a, b in last.pairs)


def test_a_full_fabric_uses_every_uplink_twice() -> None:
    fabric = fabric_of([8, 8, 8, 8])
    rounds = plan_screening(fabric, list(fabric.nodes), 3)[:2]
    for planned in rounds:
        used = [part.name for pair in planned.pairs for part in fabric.list_uplinks_between(*pair, 0)]
        assert sorted(used) == sorted(name for names in fabric.uplinks.values() for name in names)


@pytest.mark.parametrize(("count", "rounds", "pairs"), [(0, 0, 0), (1, 0, 0), (2, 1, 1), (3, 3, 3), (4, 3, 6)])
def test_few_nodes_have_few_rounds(count: int, rounds: int, pairs: int) -> None:
    fabric = FabricMap.without_design([f"n{at}" for at in range(count)])
    planned = plan_screening(fabric, list(fabric.nodes), 0)
    assert (len(planned), sum(len(one.pairs) for one in planned)) == (rounds, pairs)
