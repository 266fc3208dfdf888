"""A box with one chip a plane is one switch with one plug a cable: its loss, and that of a plane, count so."""

from random import Random

import pytest

from assay.fabric.compare.compare import compare_cabling
from assay.fabric.compare.tickets import make_cabling_tickets
from assay.fabric.design.compiler import compile_topology
from assay.fabric.design.impact import assess_failure
from assay.model.fleet import Fleet
from assay.model.specs.fabric.fabric_design import FabricDesign
from tests.support.fabrics.fat_trees import as_built, in_reach

PLANES, LEAVES, SPINES, NODES, PAIR = range(1, 5), 2, 2, 4, 2


def chip(box, plane):
    return f"{box}-p{plane}"


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    """Two leaf boxes with two nodes each, and two spine boxes; every box has four planes, every adapter four ports."""
    boxes = [*(f"leaf-{n}" for n in range(LEAVES)), *(f"spine-{n}" for n in range(SPINES))]
    devices = [
        {"guid": f"0x{0xB000 + 16 * n + p:016x}", "name": chip(box, p), "ports": 40, "box": box, "plane": p}
        for n, box in enumerate(boxes)
        for p in PLANES
    ]
    cables = []
    for number in range(NODES):
        name = f"h{number} mlx5_0"
        devices.append(
            {"guid": f"0x{0xA000 + number:016x}", "name": name, "kind": "hca", "ports": 4, "node": f"h{number}"}
        )
        cables += [f"{name}/{p} - {chip(f'leaf-{number % LEAVES}', p)}/{number + 1}" for p in PLANES]
    for leaf in range(LEAVES):
        for spine in range(SPINES):
            for k in range(PAIR):
                up, down = 20 + spine * PAIR + k, 1 + leaf * PAIR + k
                cables += [f"{chip(f'leaf-{leaf}', p)}/{up} - {chip(f'spine-{spine}', p)}/{down}" for p in PLANES]
    rules = {"kind": "FabricDesign", "name": "planes", "rate": "1xXDR", "devices": devices, "cables": cables}
    return compile_topology(FabricDesign.model_validate(rules), Fleet(tmp_path_factory.getbasetemp(), {}))


def without_chips(plan, names):
    gone = {device.guid for device in plan if device.name in names}
    return compare_cabling(plan, in_reach(plan, [c for c in as_built(plan) if not gone & {c.a.guid, c.b.guid}]))


def test_a_lost_box_counts_boxes_below_it_and_paths_through_boxes(plan):
    told = assess_failure(plan, "spine-0")
    assert told.lines == ("without spine-0 2 switches below it are left with 8 of 16 cables up (50% of the bandwidth)",)


def test_a_lost_plane_costs_each_node_its_share_and_no_path(plan):
    told = assess_failure(plan, "plane 2")
    assert told.lines[0] == "without plane 2 4 nodes are left with 3 of 4 links"
    assert told.cut_off == ()


def test_a_lost_leaf_box_is_one_switch_and_cuts_its_nodes_off(plan):
    assert assess_failure(plan, "leaf-0").cut_off == ("h0", "h2")


def test_a_dead_plane_is_one_ticket(plan):
    names = {chip(box, 3) for box in ("leaf-0", "leaf-1", "spine-0", "spine-1")}
    (ticket,) = make_cabling_tickets(without_chips(plan, names - {"leaf-0-p3"}))
    assert ticket.title == "Find the device and check its power: Plane 3, 3 chips not in the fabric"
    assert "whose other planes work" in ticket.cause


def test_a_dead_box_is_one_ticket(plan):
    (ticket,) = make_cabling_tickets(without_chips(plan, {chip("spine-1", p) for p in PLANES}))
    assert ticket.title == "Find the device and check its power: spine-1, 4 chips not in the fabric"


def test_an_unplugged_cable_is_one_ticket_though_four_planes_lose_a_link(plan):
    gone = [c for c in as_built(plan) if c.b.number == 2 and plan.devices[c.b.guid].box == "spine-0"]
    comparison = compare_cabling(plan, in_reach(plan, [c for c in as_built(plan) if c not in gone]))
    assert len(comparison.discrepancies) == len(gone) == 4
    (ticket,) = make_cabling_tickets(comparison)
    ends = {"spine-0 port 2", "leaf-0 port 21"}
    assert set(ticket.title.removeprefix("Mend what these links share: No link, ").split(" and ")) == ends


def test_one_bad_plane_of_a_cable_says_which_links_share_its_plug(plan):
    gone = next(c for c in as_built(plan) if plan.devices[c.b.guid].name == "spine-0-p1")
    comparison = compare_cabling(plan, in_reach(plan, [c for c in as_built(plan) if c != gone]))
    (ticket,) = make_cabling_tickets(comparison)
    assert len(ticket.beside.splitlines()) == 2 * 3, "three other planes at either end"


@pytest.mark.parametrize("seed", range(5))
def test_there_are_as_many_tickets_as_plugs(small, seed):
    """Links down, slow, or in another cage: however many links a plug has, it is one ticket."""
    rng = Random(seed)
    cages: dict[tuple[str, int], list] = {}
    for cable in as_built(small):
        if small.devices[cable.a.guid].node:
            cages.setdefault((cable.b.guid, (cable.b.number - 1) // 2), []).append(cable)
    full = [links for links in cages.values() if len(links) == 2]
    by_leaf = {}
    for links in full:
        by_leaf.setdefault(links[0].b.guid, []).append(links)
    kept = set(as_built(small))
    plugs = 0
    for leaf in by_leaf.values():
        deed = rng.choice(["lose", "slow", "both", "exchange"])
        a, b = rng.sample(leaf, 2)
        plugs += 1
        kept -= {*a, *(b if deed == "exchange" else ())}
        if deed == "slow":
            kept |= {cable._replace(rate="4xHDR") for cable in a}
        if deed == "both":
            kept.add(a[0]._replace(rate="4xHDR"))
        if deed == "exchange":
            kept |= {one._replace(b=other.b) for x, y in zip(a, b, strict=True) for one, other in ((x, y), (y, x))}
    tickets = make_cabling_tickets(compare_cabling(small, in_reach(small, list(kept))))
    assert len(tickets) == plugs, [ticket.title for ticket in tickets]


def test_a_plane_that_lost_most_of_its_links_in_all_boxes_is_one_fault(plan):
    own = [cable for cable in as_built(plan) if plan.devices[cable.b.guid].plane == 2]
    gone = [cable for at, cable in enumerate(own) if at % 3]
    comparison = compare_cabling(plan, in_reach(plan, [cable for cable in as_built(plan) if cable not in gone]))
    (ticket,) = make_cabling_tickets(comparison)
    assert ticket.title == f"Mend what these links share: No link, {len(gone)} cables of plane 2"
