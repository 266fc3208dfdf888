"""A box with several chips is one box: it dies as one, links inside it are no plugs, and its loss counts as a whole."""

from itertools import combinations

import pytest

from assay.fabric.compare.compare import compare_cabling
from assay.fabric.compare.tickets import make_cabling_tickets
from assay.fabric.design.compiled_topology import CableTable, CompiledTopology
from assay.fabric.design.impact import assess_failure
from assay.fabric.discovery import DiscoveredDevice
from assay.model.specs.fabric.cable import PortId
from tests.fabric.directors import LEAVES, SPINES, director
from tests.support.fabrics.fat_trees import as_built, in_reach


@pytest.fixture(scope="module")
def plan():
    return director()


def without(plan, *names):
    gone = {device.guid for device in plan if device.name in names}
    return compare_cabling(plan, in_reach(plan, [c for c in as_built(plan) if not gone & {c.a.guid, c.b.guid}]))


def test_a_dead_box_is_one_ticket(plan):
    comparison = without(plan, *LEAVES, *SPINES)
    tickets = [ticket for ticket in make_cabling_tickets(comparison) if "dir" in ticket.title]
    assert [ticket.title for ticket in tickets] == [
        "Find the device and check its power: dir, 4 chips not in the fabric"
    ]
    assert "its power, or the card itself" in tickets[0].cause


def test_a_dead_line_card_is_one_ticket_that_names_the_card(plan):
    (ticket,) = make_cabling_tickets(without(plan, "dir-L1a", "dir-L1b"))
    assert ticket.title == "Find the device and check its power: dir L1, 2 chips not in the fabric"


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
    assert ticket.title == "Mend what these links share: dir, 2 links inside it are down"


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


def renewed(plan, *names):
    """The comparison after these chips have new GUIDs, all of which announce the same."""
    new = {device.guid: f"0xe{device.guid[3:]}" for device in plan if device.name in names}
    extra = [DiscoveredDevice(guid, "switch", 40, "MF0;dir:CS8500/L1/U1") for guid in new.values()]
    cables = [
        c._replace(a=PortId(new.get(c.a.guid, c.a.guid), c.a.number), b=PortId(new.get(c.b.guid, c.b.guid), c.b.number))
        for c in as_built(plan)
    ]
    return compare_cabling(plan, in_reach(plan, cables, extra))


@pytest.mark.parametrize(
    ("names", "title"),
    [((*LEAVES, *SPINES), "dir, 6 chips with new GUIDs"), (LEAVES[:2], "dir L1, 2 chips with new GUIDs")],
    ids=["box", "card"],
)
def test_a_replaced_box_or_card_is_one_ticket_that_names_each_chip(plan, names, title):
    comparison = renewed(plan, *names)
    (ticket,) = make_cabling_tickets(comparison)
    assert (ticket.title, ticket.severity) == (f"Confirm the new device in the design: {title}", "informational")
    assert {one.device for one in comparison.discrepancies} == set(names)


def test_a_new_spine_with_new_leaves_below_it_is_told(plan):
    switches = {device.name for device in plan if device.kind == "switch"}
    comparison = renewed(plan, *switches)
    assert {one.kind for one in comparison.discrepancies} == {"device-replaced"}
    assert {one.device for one in comparison.discrepancies} == switches


def test_the_loss_of_all_switches_cuts_every_node_off(plan):
    inside = [device for device in plan if device.name != "top" and device.node != "far"]
    kept = {device.guid for device in inside}
    links = CableTable()
    for cable in plan.cables:
        if {cable.a.guid, cable.b.guid} <= kept:
            ends = [[device.guid for device in inside].index(end.guid) for end in cable.ends]
            links.add([ends[0]], [cable.a.port], [ends[1]], [cable.b.port])
    links.set_rate_and_length("4xHDR", 0)
    impact = assess_failure(CompiledTopology("d", inside, links), "dir")
    assert set(impact.cut_off) == {"h0", "h1", "h2", "h3"}


def test_whatever_chips_are_replaced_each_is_named_in_its_place(plan):
    switches = [device.name for device in plan if device.kind == "switch"]
    for many in (2, len(switches) - 1, len(switches)):
        for names in combinations(switches, many):
            comparison = renewed(plan, *names)
            assert {(one.kind, one.device) for one in comparison.discrepancies} == {
                ("device-replaced", name) for name in names
            }
