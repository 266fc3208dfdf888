"""What befalls all cables of a node, of two switches, or of a bundle is one fault, and no more than that."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.fabric.compare.compare import compare_cabling
from tests.support.fabrics.fat_trees import as_built, edge, fat_tree, in_reach

RAILS = 4


def tree(pair=4):
    return fat_tree(units=3, nodes=6, rails=RAILS, spines=4, pair=pair)


def between(plan, *names):
    """The cables that join devices or nodes of these names."""
    device = plan.devices
    found = ({device[port.guid].node or device[port.guid].name for port in cable[:2]} for cable in as_built(plan))
    return [cable for cable, at in zip(as_built(plan), found, strict=True) if at == {*names}]


def of_node(plan, node):
    return [cable for cable in as_built(plan) if plan.devices[cable.a.guid].node == node]


def faults(plan, lost=(), slow=()):
    slow = set(map(edge, slow))
    cables = [cable._replace(rate="2xNDR") if edge(cable) in slow else cable for cable in as_built(plan)]
    gone = set(map(edge, lost))
    return compare_cabling(plan, in_reach(plan, [one for one in cables if edge(one) not in gone])).list_faults()


def titles(found):
    return sorted(one.title for one in found)


@given(st.sets(st.integers(0, RAILS - 1), min_size=1))
def test_all_cables_of_a_node_slow_are_one_fault_and_fewer_are_one_each(rails):
    plan = tree()
    own = of_node(plan, "n007")
    found = faults(plan, slow=[own[rail] for rail in rails])
    assert len(found) == (1 if len(rails) == RAILS else len(rails))
    assert {node for one in found for node in one.nodes} == {"n007"}
    assert (titles(found) == ["Slow links: 4 cables of n007"]) == (len(rails) == RAILS)


def test_both_cables_of_a_node_with_two_rails_are_one_fault():
    plan = fat_tree(units=2, nodes=6, rails=2, spines=2, pair=4)
    assert titles(faults(plan, slow=of_node(plan, "n007"))) == ["Slow links: 2 cables of n007"]


def test_cables_of_a_node_that_are_down_and_slow_are_one_fault():
    plan = tree()
    own = of_node(plan, "n007")
    assert titles(faults(plan, lost=own[:1], slow=own[1:])) == ["Bad links: 4 cables of n007"]


@pytest.mark.parametrize("pair", [2, 3, 4])
@pytest.mark.parametrize("how", ["lost", "slow"])
def test_all_cables_between_two_switches_are_one_fault(pair, how):
    plan = tree(pair)
    (found,) = faults(plan, **{how: between(plan, "leaf-0-3", "spine-0-2")})
    words = {"lost": "No link", "slow": "Slow links"}
    assert found.title == f"{words[how]}: all {pair} cables between leaf-0-3 and spine-0-2"
    assert len(found.members) == pair


def test_all_cables_but_one_between_two_switches_are_not_all():
    plan = tree(pair=3)
    found = faults(plan, lost=between(plan, "leaf-0-3", "spine-0-2")[1:])
    assert not any("all" in title for title in titles(found))


def test_a_switch_that_loses_several_bundles_is_one_fault_of_the_switch():
    plan = tree()
    lost = [*between(plan, "leaf-0-3", "spine-0-2"), *between(plan, "leaf-0-3", "spine-0-1")]
    assert titles(faults(plan, lost=lost)) == ["No link: 8 cables of leaf-0-3"]


def exchanged(plan, *pairs):
    there = {one.b: other.b for pair in pairs for one, other in (pair, pair[::-1])}
    cables = [cable._replace(b=there.get(cable.b, cable.b)) for cable in as_built(plan)]
    return compare_cabling(plan, in_reach(plan, cables)).list_faults()


@pytest.mark.parametrize(("one", "other"), [("leaf-0-0", "leaf-0-5"), ("leaf-0-2", "leaf-0-9")])
@pytest.mark.parametrize(("to", "instead"), [(0, 0), (0, 1), (3, 2)])
def test_a_bundle_in_the_place_of_another_is_one_fault(one, other, to, instead):
    plan = tree()
    ours, theirs = between(plan, one, f"spine-0-{to}"), between(plan, other, f"spine-0-{instead}")
    (found,) = exchanged(plan, *zip(ours, theirs, strict=True))
    assert found.title.startswith("Exchanged cables: 4 pairs between")
    assert found.gbps == (0 if to == instead else 2 * 4 * 400)


def test_a_bundle_of_two_cables_in_the_place_of_another_is_one_fault():
    plan = tree(pair=2)
    ours, theirs = between(plan, "leaf-0-0", "spine-0-0"), between(plan, "leaf-0-5", "spine-0-1")
    (found,) = exchanged(plan, *zip(ours, theirs, strict=True))
    assert found.gbps == 2 * 2 * 400


def test_all_uplinks_of_two_leaves_exchanged_are_one_fault():
    plan = tree()
    ours, theirs = ([one for spine in range(4) for one in between(plan, leaf, f"spine-0-{spine}")]
                    for leaf in ("leaf-0-1", "leaf-0-6"))  # fmt: skip
    (found,) = exchanged(plan, *zip(ours, theirs, strict=True))
    assert (found.title, found.severity) == (
        "Exchanged cables: 16 pairs between leaf-0-1 and leaf-0-6", "informational",
    )  # fmt: skip


def test_swaps_of_different_switches_are_a_fault_each():
    plan = tree()
    ours = [between(plan, f"leaf-0-{leaf}", f"spine-0-{leaf % 2}")[0] for leaf in range(4)]
    theirs = [between(plan, f"leaf-0-{leaf + 4}", f"spine-0-{2 + leaf % 2}")[0] for leaf in range(4)]
    assert len(exchanged(plan, *zip(ours, theirs, strict=True))) == 4
