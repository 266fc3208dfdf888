"""A box with several chips is one box: it dies as one, links inside it are no plugs, and its loss counts as a whole."""

import pytest
from fat_trees import as_built, in_reach

from assay.fabric.comparison.cabling_tickets import make_cabling_tickets
from assay.fabric.comparison.compare import compare_cabling
from assay.fabric.topology.design_compiler import compile_topology
from assay.fabric.topology.failure_impact import assess_failure
from assay.model.fabric.fabric_design import FabricDesign
from assay.model.fleet import Fleet

HOSTS, LEAVES = 4, ("dir-L1a", "dir-L1b", "dir-L2a", "dir-L2b")
SPINES = ("dir-S1", "dir-S2")


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    """A director with two line cards of two chips and two spine cards, and a switch beside it with a node."""
    guids = {name: f"0x{number:016x}" for number, name in enumerate((*LEAVES, *SPINES, "top"), start=0xB0)}
    devices = [
        {"guid": guid, "name": name, "ports": 40, "rack": "r1", "u": 10}
        | ({"box": "dir", "module": name[4:6]} if name != "top" else {})
        for name, guid in guids.items()
    ]
    cables = [f"{leaf}/{20 + s} - {spine}/{1 + n}" for n, leaf in enumerate(LEAVES) for s, spine in enumerate(SPINES)]
    cables += [f"{leaf}/{10 + n} - top/{2 * number + n}" for number, leaf in enumerate(LEAVES) for n in (1, 2)]
    for number in range(HOSTS):
        for rail, leaf in enumerate((LEAVES[0], LEAVES[2])):
            name, guid = f"h{number} mlx5_{rail}", f"0x{0xA000 + 16 * number + rail:016x}"
            devices.append({"guid": guid, "name": name, "kind": "hca", "ports": 1, "node": f"h{number}"})
            cables.append(f"{name}/1 - {leaf}/{number + 1}")
    for port in (30, 31):
        guid = f"0x{0xC000 + port:016x}"
        devices.append({"guid": guid, "name": f"far mlx5_{port}", "kind": "hca", "ports": 1, "node": "far"})
        cables.append(f"far mlx5_{port}/1 - top/{port}")
    design = FabricDesign.model_validate(
        {"kind": "FabricDesign", "name": "d", "rate": "4xHDR", "devices": devices, "cables": cables}
    )
    return compile_topology(design, Fleet(tmp_path_factory.getbasetemp(), {}))


def without(plan, *names):
    gone = {device.guid for device in plan if device.name in names}
    return compare_cabling(plan, in_reach(plan, [c for c in as_built(plan) if not gone & {c.a.guid, c.b.guid}]))


def test_a_dead_box_is_one_ticket(plan):
    comparison = without(plan, *LEAVES, *SPINES)
    tickets = [ticket for ticket in make_cabling_tickets(comparison) if "dir" in ticket.title]
    assert [ticket.title for ticket in tickets] == ["dir: 4 chips not in the fabric"]
    assert "its power, or the card itself" in tickets[0].cause


def test_a_dead_line_card_is_one_ticket_that_names_the_card(plan):
    (ticket,) = make_cabling_tickets(without(plan, "dir-L1a", "dir-L1b"))
    assert ticket.title == "dir L1: 2 chips not in the fabric"


def test_a_link_inside_a_box_is_no_plug(plan):
    inside = next(c for c in as_built(plan) if plan.devices[c.a.guid].name == "dir-L1a" and plan.devices[c.b.guid].box)
    comparison = compare_cabling(plan, in_reach(plan, [c for c in as_built(plan) if c != inside]))
    (one,) = comparison.discrepancies
    assert (one.kind, one.box) == ("missing", "dir")
    (ticket,) = make_cabling_tickets(comparison)
    assert "it runs inside dir, where it has no plug" in ticket.seen
    assert "seat" not in ticket.steps
    assert "restart dir, or replace the card" in ticket.steps


def test_several_links_inside_a_box_are_one_ticket(plan):
    inside = [c for c in as_built(plan) if plan.find_box(c.a, c.b) and plan.devices[c.b.guid].name == "dir-S1"][:2]
    comparison = compare_cabling(plan, in_reach(plan, [c for c in as_built(plan) if c not in inside]))
    (ticket,) = make_cabling_tickets(comparison)
    assert ticket.title == "dir: 2 links inside it are down"


def test_the_loss_of_a_box_is_that_of_all_its_chips(plan):
    box, card = assess_failure(plan, "dir"), assess_failure(plan, "dir L1")
    assert {"h0", "h1", "h2", "h3"} <= set(box.cut_off)
    assert "4 nodes are left with 0 of 2 links" in box.lines[0]
    assert "4 nodes are left with 1 of 2 links" in card.lines[0]


def test_names_that_are_not_unique_carry_their_guid(plan):
    chips = [device._replace(name="dir") if device.box else device for device in plan]
    twins = plan.__class__("d", chips, plan.links)
    (one,) = compare_cabling(twins, in_reach(twins, as_built(twins)[1:])).discrepancies
    assert f"dir {twins.cables[0].a.guid}" in one.summary
