"""Rules with planes: each switch is a box of one chip a plane, each adapter has a port for each."""

import re
from pathlib import Path
from random import Random

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from assay.cli.verbs.fabric import format_comparison
from assay.decide.plan.cable_moves import plan_cabling_jobs
from assay.declare.starter.shipped_specs import find_adapter_names
from assay.fabric.compare.compare import compare_cabling
from assay.fabric.compare.tickets import make_cabling_tickets
from assay.fabric.design.compiler import compile_topology
from assay.fabric.design.impact import assess_failure
from assay.fabric.learn.draft import draft_rules
from assay.fabric.learn.hosts import find_hosts
from assay.fabric.learn.judged_design import judge_discovery
from assay.model.fleet import Fleet
from assay.model.specs.fabric.fabric_design import FabricDesign
from tests.support.fabrics.fat_trees import as_built, in_reach
from tests.support.fabrics.plane_trees import announced, plane_design, plane_tree, row
from tests.support.fabrics.superpods import fleet_of

NOBODY = Fleet(Path(), {})


def learn(seen):
    judged = judge_discovery(seen, "learned", NOBODY, find_hosts(seen.devices.values(), find_adapter_names(None)))
    learned = FabricDesign.model_validate(yaml.safe_load(draft_rules(judged, seen)))
    return judged, learned, compile_topology(learned, NOBODY)


def test_every_plane_is_cabled_alike():
    plan = plane_tree()
    assert len(plan.cables) == 4 * (6 * 2 + 4 * 4)
    assert {
        (end.port, plan.devices[cable.b.guid].plane) for cable in plan.cables for end in cable.ends if end.node
    } == {(plane, plane) for plane in (1, 2, 3, 4)}
    chips = {plan.devices[cable.a.guid].plane - plan.devices[cable.b.guid].plane for cable in plan.cables
             if not cable.a.node}  # fmt: skip
    assert chips == {0}
    assert {device.name for device in plan if device.box == "leaf-2-1"} == {
        f"leaf-2-1-p{plane}" for plane in (1, 2, 3, 4)
    }


def test_a_lost_plug_is_one_ticket_and_a_plane_costs_each_node_its_share():
    plan = plane_tree()
    gone = [cable for cable in plan.cables if cable.a.device == "n0002 mlx5_1"]
    seen = in_reach(plan, [cable for cable in as_built(plan) if cable.a.guid != gone[0].a.guid])
    (ticket,) = make_cabling_tickets(compare_cabling(plan, seen))
    assert len(gone) == 4
    assert "n0002" in ticket.title
    assert assess_failure(plan, "plane 2").lines[0] == "without plane 2 6 nodes are left with 6 of 8 links"
    assert (
        assess_failure(plan, "spine-1").lines[0].startswith("without spine-1 4 switches below it are left with 8 of 16")
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"spines": {"name": "s-{index}", "per_pair": 2, "at": row(2, 2, 3)}},
         "planes: 4, but 0x00000000e0020000 has GUIDs for 3"),
        ({"spines": {"name": "s-{index}", "per_pair": 2, "at": [one | {"box": "d"} for one in row(2, 2, 4)]}},
         "0x00000000e0020000 has planes, so it is a box itself"),
        ({"spines": {"name": "s-{index}", "per_pair": 2, "at": row(1, 2, 4)}},
         "guid 0x00000000e0010001 is given twice"),
    ],
)  # fmt: skip
def test_planes_that_contradict_the_switches_are_refused(changes, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        plane_design(**changes)


SHAPES = [
    {},
    {"planes": 2, "units": 1, "places": 4, "rails": 3},
    {"units": 2, "rails": 1, "places": 6, "tops": 3, "pair": 1},
    {"cores": 2},
]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_clean_fabric_is_learnt_as_rules(shape):
    plan = plane_tree(**shape)
    seen = announced(plan, as_built(plan))
    judged, learned, topology = learn(seen)
    assert judged.exceptions == []
    assert learned.planes == shape.get("planes", 4)
    assert compare_cabling(topology, seen).verdict == "match"
    assert {device.name for device in topology if device.box} == {device.name for device in plan if device.box}


LARGE = [
    {"units": 3, "places": 8, "rails": 4, "tops": 4},
    {"planes": 2, "units": 4, "places": 6, "rails": 3, "tops": 3, "pair": 3},
]


@given(st.sampled_from(LARGE), st.integers(0, 10_000))
def test_planted_faults_are_the_exceptions(shape, seed):
    """Plugs that were exchanged or pulled, and a dead chip."""
    plan, rng = plane_tree(**shape), Random(seed)
    plugs = {}
    for cable in as_built(plan):
        plugs.setdefault((plan.devices[cable.b.guid].box, cable.b.number), []).append(cable)
    lost = rng.choice(list(plugs))
    dead = rng.choice([device.guid for device in plan if device.box]) if rng.random() < 0.3 else ""
    kept = [cable for plug, links in plugs.items() if plug != lost for cable in links]
    if rng.random() < 0.5:
        a, b = rng.sample([plug for plug in plugs if plug != lost], 2)
        for one, other in zip(plugs[a], plugs[b], strict=True):
            kept.remove(one), kept.remove(other)
            kept += [one._replace(b=other.b), other._replace(b=one.b)]
    kept = [cable for cable in kept if dead not in (cable.a.guid, cable.b.guid)]
    seen = announced(plan, kept)
    judged, _, _ = learn(seen)
    told = compare_cabling(plan, seen)
    assert sorted(one.kind for one in judged.exceptions) == sorted(one.kind for one in told.discrepancies)
    assert judged.comparison.matching == told.matching


@pytest.fixture(scope="module")
def large():
    return plane_tree(units=2, places=8, rails=4, tops=4)


def box(plan, end):
    return plan.devices[end.guid].box


def exchange(plan, *plugs):
    """The fabric with the plugs of each pair of ports of boxes exchanged, in all planes."""
    kept = as_built(plan)
    for pair in plugs:
        links = [[cable for cable in kept if (box(plan, cable.b), cable.b.number) == plug] for plug in pair]
        for one, other in zip(*links, strict=True):
            kept[kept.index(one)], kept[kept.index(other)] = one._replace(b=other.b), other._replace(b=one.b)
    return kept


def without(plan, is_lost):
    return [cable for cable in as_built(plan) if not is_lost(cable)]


def in_another_port(plan, names):
    return [cable._replace(b=cable.b._replace(number=100)) if plan.devices[cable.a.guid].name in names else cable
            for cable in as_built(plan)]  # fmt: skip


DEEDS = {
    "exchanged plugs": (
        lambda plan: exchange(plan, (("leaf-1-0", 1), ("leaf-1-1", 2))),
        "Exchanged plugs: leaf-1-0 port 1 and leaf-1-1 port 2", 1,
    ),
    "an exchanged bundle": (
        lambda plan: exchange(plan, *((("leaf-1-0", port), ("leaf-1-1", port)) for port in (1, 2, 3))),
        "Exchanged cables: 3 pairs between leaf-1-0 and leaf-1-1", 3,
    ),
    "a lost trunk": (
        lambda plan: without(plan, lambda cable: (box(plan, cable.a), box(plan, cable.b)) == ("leaf-1-1", "spine-2")),
        "No link: all 2 cables between leaf-1-1 and spine-2", 2,
    ),
    "half of a leaf's uplinks": (
        lambda plan: without(plan, lambda cable: box(plan, cable.a) == "leaf-1-1"
                             and box(plan, cable.b) in ("spine-2", "spine-3")),
        "No link: 4 cables of leaf-1-1", 4,
    ),
    "a plug in another port": (
        lambda plan: in_another_port(plan, {"n0003 mlx5_1"}),
        "Plug in the wrong place: leaf-1-1 port 100 and leaf-1-1 port 3", 1,
    ),
    "a moved node": (
        lambda plan: in_another_port(plan, {f"n0003 mlx5_{rail}" for rail in range(4)}),
        "Node in other ports: n0003, 4 plugs", 4,
    ),
}  # fmt: skip


@pytest.mark.parametrize("deed", DEEDS)
def test_what_happens_to_cables_is_told_of_cables_and_not_of_links(large, deed):
    do, title, cables = DEEDS[deed]
    comparison = compare_cabling(large, in_reach(large, do(large)))
    (ticket,) = make_cabling_tickets(comparison)
    assert ticket.title.endswith(f": {title.replace(': ', ', ')}")
    kind = comparison.discrepancies[0].kind
    assert format_comparison(comparison).count(f"  {kind}: ") == cables


def test_a_new_node_is_one_cable_to_lay_for_each_rail():
    before, after = plane_design(gaps=["n0004"]), plane_design()
    nodes = fleet_of(after, 2).nodes
    (old, new) = (Fleet(Path(), nodes, designs={"planes": one}) for one in (before, after))
    (job,) = plan_cabling_jobs(old, new)
    assert (job.what, len(job.steps)) == ("lay", 2)


PLUG = ", with 4 planes, carries 4 of the 16 links of n0003"


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("leaf-1-2 port 3", PLUG),
        ("leaf-1-2[3]", PLUG),
        ("n0003 mlx5_2", PLUG),
        ("leaf-1-2[10]", "4 of the 32 links up of leaf-1-2, 4 of the 8 to spine-1"),
        ("n0003 mlx5_2[2]", "carries 1 of the 16 links of n0003"),
        ("leaf-1-2-p2[3]", "carries 1 of the 16 links of n0003"),
    ],
)
def test_a_cable_of_boxes_is_lost_in_all_planes(large, what, said):
    assert assess_failure(large, what).lines[0].endswith(said)
