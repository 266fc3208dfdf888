"""The likely common cause of a wave: what its nodes share and the others do not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.decide.moves.circuit_breaker import find_deadline_waves, find_new_waves, rank_common_causes

SIZE = 16


def traits(index, **changed):
    plain = {
        "rack": f"r{index % 4}",
        "leaf": f"leaf-{index // 8}",
        "spec commit": "aaaa",
        "firmware": "bios 1.0",
    }
    return frozenset((plain | changed).items())


def said(wave, changed):
    """Return what is said of a wave of these nodes of sixteen, which differ from the others in `changed`."""
    nodes = {index: traits(index, **(changed if index in wave else {})) for index in range(SIZE)}
    found = rank_common_causes(
        [nodes[index] for index in wave], [nodes[index] for index in range(SIZE) if index not in wave]
    )
    return [str(one) for one in found]


@pytest.mark.parametrize(
    ("wave", "changed", "first"),
    [
        (range(8), {}, "leaf leaf-0 (8 of 8, and 0 of the 8 others)"),
        (range(0, 16, 4), {}, "rack r0 (4 of 4, and 0 of the 12 others)"),
        ((0, 5, 10, 15), {"spec commit": "bbbb"}, "spec commit bbbb (4 of 4, and 0 of the 12 others)"),
        ((0, 5, 10, 15), {"firmware": "bios 2.0"}, "firmware bios 2.0 (4 of 4, and 0 of the 12 others)"),
    ],
)
def test_what_only_the_wave_has_comes_first(wave, changed, first):
    assert said(wave, changed)[0] == first


def test_what_everybody_has_is_no_suspect():
    assert said((0, 5, 10, 15), {}) == []


def test_where_all_are_hit_what_all_share_is_all_that_can_be_said():
    found = rank_common_causes([traits(index) for index in range(SIZE)], [])
    assert [str(one) for one in found] == ["spec commit aaaa (16 of 16)", "firmware bios 1.0 (16 of 16)"]


def test_leaves_that_fit_alike_are_one_suspect():
    unit = frozenset(("leaf", f"leaf-{rail}") for rail in range(8))
    (one,) = rank_common_causes([unit] * 4, [frozenset({("leaf", "leaf-9")})] * 4)
    assert str(one) == "leaf leaf-0, leaf-1, leaf-2 and 5 more (4 of 4, and 0 of the 4 others)"


sets = st.lists(st.frozensets(st.tuples(st.sampled_from(["rack", "leaf", "odd"]), st.sampled_from("ab"))), max_size=6)


@given(wave=sets, others=sets)
def test_a_ranking_is_the_same_in_any_order_and_never_blames_what_the_others_have_as_often(wave, others):
    found = rank_common_causes(wave, others)
    assert found == rank_common_causes(wave[::-1], others[::-1])
    for one in found:
        assert one.wave_hits / one.wave_size > (one.other_hits / one.others if one.others else 0)


@pytest.fixture
def pool(paper):
    for index in range(SIZE):
        paper.add(f"n{index:02}", rack=f"r{index % 4}")
    return paper


def test_the_breaker_names_the_dead_leaf(pool):
    for index in range(8):
        pool.fault(f"n{index:02}", "ib.link.down", "mlx5_0")
    known = {f"n{index:02}": traits(index) for index in range(SIZE)}
    wave = find_new_waves(replace(pool.situation(), traits=known))["a"]
    assert wave.endswith("; likely behind it: leaf leaf-0 (8 of 8, and 0 of the 8 others)")


def test_unlike_faults_blame_no_leaf_though_their_nodes_share_one(pool):
    unlike = ["ib.link.down", "psu.failed", "gpu.xid.79", "gpu.xid.48"]
    for index in range(8):
        pool.fault(f"n{index:02}", unlike[index % 4])
    known = {f"n{index:02}": traits(index) for index in range(SIZE)}
    wave = find_new_waves(replace(pool.situation(), traits=known))["a"]
    assert wave.endswith("(4 kinds of fault, none on most of them: gpu.xid.48 on 2, in 4 racks)")


def test_the_healthy_ones_count_where_they_rest_too(pool):
    for index in range(8):
        pool.fault(f"n{index:02}", "ib.link.down", "mlx5_0")
    known = {f"n{index:02}": traits(index) for index in range(SIZE)}
    whole = pool.situation()
    quiet = replace(whole, nodes=whole.nodes[:8], quiet_counts={("a", "lab1", "r0"): 8}, traits=known)
    assert find_new_waves(quiet) == find_new_waves(replace(whole, traits=known))


def test_missed_deadlines_name_what_they_share_as_well(paper):
    for index in range(8):
        paper.add(f"n{index:02}", "zap", rack="r1")
    paper.later(hours=7)
    known = {f"n{index:02}": frozenset({("rack", "r1" if index < 8 else "r2")}) for index in range(SIZE)}
    assert find_deadline_waves(replace(paper.situation(), traits=known))["a"].endswith(
        "; likely behind it: rack r1 (8 of 8, and 0 of the 8 others)"
    )
