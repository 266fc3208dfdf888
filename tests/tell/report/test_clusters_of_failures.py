"""The place that explains failures best is found, whatever the fleet; what nothing explains is said to be that."""

from __future__ import annotations

from collections import Counter

from hypothesis import assume, given
from hypothesis import strategies as st

from assay.tell.report.cluster_statistics import EVERYWHERE_GROUP, UNRELATED_GROUP, explain_failures

Fleet = dict[str, tuple[tuple[str, str], ...]]


def fleet(racks: int, each: int) -> Fleet:
    """Return nodes by rack, every other rack of another pool."""
    return {
        f"n{rack}-{at}": (("rack", f"r{rack}"), ("pool", f"p{rack % 2}")) for rack in range(racks) for at in range(each)
    }


def sizes(nodes: Fleet) -> Counter:
    return Counter(
        [group for groups in nodes.values() for group in groups]
        + [EVERYWHERE_GROUP] * len(nodes)
        + [UNRELATED_GROUP] * len(nodes)
    )


def found(nodes: Fleet, failing: list[str]):
    return explain_failures(failing, nodes, sizes(nodes))


@given(st.integers(5, 30), st.integers(3, 8), st.data())
def test_a_rack_that_fails_whole_is_told_however_many_there_are(racks, each, data):
    nodes = fleet(racks, each)
    ill = data.draw(st.integers(0, racks - 1))
    (place,) = found(nodes, [name for name in nodes if name.startswith(f"n{ill}-")])
    assert place.group == ("rack", f"r{ill}")
    assert (len(place.members), place.judged, place.elsewhere) == (each, each, 0)


@given(st.integers(6, 30), st.integers(4, 8), st.data())
def test_a_stray_failure_elsewhere_does_not_hide_the_rack(racks, each, data):
    nodes = fleet(racks, each)
    ill, stray = data.draw(st.lists(st.integers(0, racks - 1), min_size=2, max_size=2, unique=True))
    whole = [name for name in nodes if name.startswith(f"n{ill}-")]
    first, *rest = found(nodes, [*whole, f"n{stray}-0"])
    assert (first.group, first.members, first.elsewhere) == (("rack", f"r{ill}"), tuple(whole), 1)
    assert [place.group for place in rest] == [UNRELATED_GROUP]


@given(st.integers(2, 12), st.integers(1, 8), st.data())
def test_every_failure_is_in_exactly_one_place(racks, each, data):
    nodes = fleet(racks, each)
    failing = data.draw(st.lists(st.sampled_from(sorted(nodes)), unique=True))
    told = [member for place in found(nodes, failing) for member in place.members]
    assert sorted(told) == sorted(failing)


@given(st.integers(2, 12), st.integers(1, 8), st.data())
def test_what_is_told_of_a_place_can_be_counted_again(racks, each, data):
    nodes = fleet(racks, each)
    failing = data.draw(st.lists(st.sampled_from(sorted(nodes)), unique=True))
    for place in found(nodes, failing):
        assert 0 <= place.chance <= 1
        assert len(place.members) <= place.judged
        if place.group not in (EVERYWHERE_GROUP, UNRELATED_GROUP):
            assert place.lift >= 2
            assert len(place.members) >= 2
            assert all(place.group in nodes[member] for member in place.members)


@given(st.integers(4, 20), st.integers(2, 8))
def test_what_fails_on_all_fails_everywhere(racks, each):
    nodes = fleet(racks, each)
    (place,) = found(nodes, list(nodes))
    assert place.group == EVERYWHERE_GROUP


@given(st.integers(4, 20), st.integers(2, 8))
def test_a_pool_that_fails_is_told_as_the_pool_and_not_as_its_racks(racks, each):
    nodes = fleet(2 * racks, each)
    (place,) = found(nodes, [name for name, groups in nodes.items() if ("pool", "p1") in groups])
    assert place.group == ("pool", "p1")


@given(st.integers(8, 30), st.integers(2, 8), st.data())
def test_failures_in_racks_far_apart_are_no_cluster(racks, each, data):
    nodes = {name: (groups[0],) for name, groups in fleet(racks, each).items()}
    assume(racks * each > 8)
    apart = data.draw(st.lists(st.integers(0, racks - 1), min_size=1, max_size=3, unique=True))
    (place,) = found(nodes, [f"n{rack}-0" for rack in apart])
    assert place.group == UNRELATED_GROUP


def test_groups_that_explain_as_much_are_told_beside():
    nodes = {name: (*groups, ("leaf", groups[0][1])) for name, groups in fleet(6, 4).items()}
    (place,) = found(nodes, [name for name in nodes if name.startswith("n2-")])
    assert (place.group, place.also) == (("rack", "r2"), (("leaf", "r2"),))


def test_two_failures_in_one_rack_may_be_chance_and_are_told_so():
    nodes = fleet(5, 4)
    (place,) = found(nodes, ["n2-0", "n2-1"])
    assert (place.group, place.sure) == (("rack", "r2"), False)
