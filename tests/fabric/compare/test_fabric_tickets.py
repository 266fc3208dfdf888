"""Every discrepancy is one ticket that a technician can work with, and the same one tomorrow."""

from typing import get_args

import pytest

from assay.fabric.compare.compare import compare_cabling
from assay.fabric.compare.discrepancy import DiscrepancyKind
from assay.fabric.compare.tickets import LIKELY_CAUSES, ORDERS, make_cabling_tickets
from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice, FabricDiscovery, PortFacts
from assay.fabric.readers.format_detection import read_topology
from assay.lab.fabric.ibnetdiscover import format_net_file
from assay.model.facts import from_json, to_json
from assay.model.specs.fabric.cable import PortId
from assay.model.ticket import Ticket, TicketPlace
from tests.support.fabrics.fat_trees import RATE, as_built, fat_tree, in_reach


def look(plan, change=lambda cables: cables, problems=()):
    cables = change([DiscoveredCable(cable.a.port_id, cable.b.port_id, cable.rate) for cable in plan.cables])
    devices = {g: DiscoveredDevice(g, d.kind, d.ports, d.description) for g, d in plan.devices.items()}
    return compare_cabling(plan, FabricDiscovery(cables, devices, problems))


def swap_two(cables):
    a, b, *rest = cables[2], cables[6], *cables[:2], *cables[3:6], *cables[7:]
    return [a._replace(b=b.b), b._replace(b=a.b), *rest]


def test_a_swap_is_one_ticket_that_names_four_ends(small):
    (ticket,) = make_cabling_tickets(look(small, swap_two))
    assert ticket.title == "Exchange the plugs back: n01 mlx5_2 and n02 mlx5_2"
    assert set(ticket.places) == {
        TicketPlace("n01 mlx5_2", "lab1", "r01", 4, "1", "R2"),
        TicketPlace("n02 mlx5_2", "lab1", "r01", 14, "1", "R2"),
        TicketPlace("leaf-1-2", "lab1", "r09", 12, "1", "1/1"),
        TicketPlace("leaf-1-2", "lab1", "r09", 12, "2", "1/2"),
    }
    assert ticket.node == ""
    assert ticket.verify == "fabric scan small"


def test_expected_and_seen_say_both_cables_in_words(small):
    (ticket,) = make_cabling_tickets(look(small, swap_two))
    assert "n01 mlx5_2 port R2 (r01 U4) – leaf-1-2 port 1/1 (r09 U12) at 4xNDR" in ticket.expected
    assert "n01 mlx5_2 port R2 (r01 U4) – leaf-1-2 port 1/2 (r09 U12) at 4xNDR" in ticket.seen


def test_the_next_scan_finds_the_same_ticket_whatever_else_changed(small):
    (first,) = make_cabling_tickets(look(small, swap_two))
    later = make_cabling_tickets(look(small, lambda cables: swap_two(cables)[:-1][::-1]))
    assert first.id in [ticket.id for ticket in later]
    assert first.key in [ticket.key for ticket in later]
    assert len({ticket.key for ticket in later}) == 2


def test_a_link_of_one_node_is_that_nodes_ticket(small):
    (ticket,) = make_cabling_tickets(look(small, lambda cables: cables[1:]))
    assert ticket.node == "n01"
    assert "no link" in ticket.seen


def test_a_cable_between_switches_is_no_nodes_ticket(small):
    (ticket,) = make_cabling_tickets(look(small, lambda cables: cables[:-1]))
    assert ticket.node == ""
    assert ticket.title == "Reseat or replace the cable: leaf-1-3 and spine-2"


def test_a_device_that_is_gone_is_one_place(small):
    gone = {cable.a.port_id for cable in small.cables_of_node("n04")}
    (ticket,) = make_cabling_tickets(look(small, lambda cables: [c for c in cables if c.a not in gone]))
    assert ticket.places == (TicketPlace("n04", "lab1", "r01", 34),)
    assert (ticket.node, ticket.title) == ("n04", "Find the device and check its power: n04")


def test_a_degraded_link_says_both_rates(small):
    (ticket,) = make_cabling_tickets(look(small, lambda cables: [cables[0]._replace(rate="4xHDR"), *cables[1:]]))
    assert "at 4xNDR" in ticket.expected
    assert "runs at 4xHDR instead of 4xNDR" in ticket.seen


def test_a_partial_discovery_tells_what_it_saw_and_nothing_that_it_may_have_missed(small):
    assert len(make_cabling_tickets(look(small, swap_two, problems=("timed out",)))) == 1
    assert make_cabling_tickets(look(small, lambda cables: cables[1:], problems=("timed out",))) == []


def test_a_clean_fabric_becomes_no_ticket(small):
    assert make_cabling_tickets(look(small)) == []


def without(*lost):
    return lambda cables: [cable for number, cable in enumerate(cables) if number not in lost]


def test_a_ticket_says_whose_traffic_shares_the_cage_before_a_plug_is_pulled(small):
    (ticket,) = make_cabling_tickets(look(small, without(0)))
    assert ticket.beside == "leaf-1-0 port 1/2 (r09 U10): rail 0 of n02"
    assert "share the cages and go down" in ticket.steps


def test_a_cable_between_switches_shares_its_cages_at_both_ends(small):
    (ticket,) = make_cabling_tickets(look(small, lambda cables: cables[:-1]))
    assert ticket.beside.splitlines() == [
        "leaf-1-3 port 8/1 (r09 U13): the traffic between leaf-1-3 and spine-2",
        "spine-2 port 8/1 (r10 U11): the traffic between spine-2 and leaf-1-3",
    ]


def test_a_swap_of_neighbours_in_one_cage_takes_nobody_else_down(small):
    (ticket,) = make_cabling_tickets(look(small, swap_two))
    assert ticket.beside == ""


def test_a_swap_says_both_ways_to_mend_it_and_why_one_is_likelier(small):
    (ticket,) = make_cabling_tickets(look(small, swap_two))
    hands, likelier, other, proof = ticket.steps.splitlines()
    assert hands.startswith("read the labels of the cables at both ends")
    assert likelier.startswith("exchange the plugs at leaf-1-2 port 1/1")
    assert likelier.endswith("(likelier: ports 1/1, 1/2 are neighbours on leaf-1-2)")
    assert other.startswith("or: exchange the plugs at n01 mlx5_2")
    assert proof == "then assay fabric scan small: this ticket closes when the scan finds it as designed"
    assert "since ports 1/1, 1/2 are neighbours on leaf-1-2" in ticket.cause


def test_both_links_of_a_cage_without_link_are_one_ticket_about_its_transceiver(small):
    (ticket,) = make_cabling_tickets(look(small, without(0, 4)))
    assert ticket.title == "Mend what these links share: No link, leaf-1-0 cage 1 to n01, n02"
    assert (
        ticket.cause == "2 links of leaf-1-0 cage 1 are down: the transceiver they share; it costs 800 Gb/s of 2 nodes"
    )
    assert (ticket.node, ticket.beside, len(ticket.places)) == ("", "", 4)
    assert ticket.key == make_cabling_tickets(look(small, without(4, 0)))[0].key


def test_links_in_two_cages_are_two_tickets(small):
    assert len(make_cabling_tickets(look(small, without(0, 8)))) == 2


def test_a_rack_without_power_is_one_ticket(small):
    gone = {
        end.guid
        for name in ("n01", "n02", "n03")
        for cable in small.cables_of_node(name)
        for end in cable.ends
        if end.node
    }
    (ticket,) = make_cabling_tickets(look(small, lambda cables: [c for c in cables if c.a.guid not in gone]))
    assert ticket.title == "Find the device and check its power: Rack r01, 3 devices not in the fabric"
    assert ticket.cause.startswith("n01, n02, n03 stand in rack r01: its power, or what they have in common there; ")
    assert [place.device for place in ticket.places] == ["n01", "n02", "n03"]


def test_a_bundle_of_cables_in_the_wrong_leaf_is_one_ticket(small):
    def bundle(cables):
        turned = {0: 1, 1: 0, 4: 5, 5: 4, 8: 9, 9: 8}
        return [cable._replace(b=cables[turned.get(number, number)].b) for number, cable in enumerate(cables)]

    (ticket,) = make_cabling_tickets(look(small, bundle))
    assert ticket.title == "Exchange the plugs back: Exchanged cables, 3 pairs between leaf-1-0 and leaf-1-1"
    assert len(ticket.places) == 12


def test_a_nodes_disabled_ports_are_one_ticket(small):
    ports = [cable.b.port_id for cable in small.cables_of_node("n02")[:2]]
    devices = {g: DiscoveredDevice(g, d.kind, d.ports, d.description) for g, d in small.devices.items()}
    cables = [DiscoveredCable(c.a.port_id, c.b.port_id, c.rate) for c in small.cables if c.b.port_id not in ports]
    facts = {port: PortFacts(port, state="disabled") for port in ports}
    (ticket,) = make_cabling_tickets(compare_cabling(small, FabricDiscovery(cables, devices, facts=facts)))
    assert (ticket.title, ticket.node) == ("Enable the port: Disabled, 2 links of n02", "n02")


def test_a_dead_leaf_says_what_it_costs(small):
    leaf = small.cables[0].b.guid
    (ticket,) = make_cabling_tickets(
        look(small, lambda cables: [c for c in cables if leaf not in (c.a.guid, c.b.guid)])
    )
    assert ticket.cause.endswith("meanwhile 6 nodes are left with 3 of 4 links; it costs 5600 Gb/s of 6 nodes")


def test_crossed_parallel_cables_cost_nothing_and_say_so(small):
    trunk = [number for number, cable in enumerate(small.cables) if not cable.a.node][:2]

    def cross(cables):
        a, b = (cables[number] for number in trunk)
        return [a._replace(b=b.b), b._replace(b=a.b), *(c for c in cables if c not in (a, b))]

    (ticket,) = make_cabling_tickets(look(small, cross))
    assert ticket.severity == "informational"
    assert "it costs nothing: the cables still join the devices that the design joins" in ticket.cause


def test_what_costs_most_nodes_comes_first(small):
    leaf = small.cables[1].b.guid
    comparison = look(
        small,
        lambda cables: [cables[0]._replace(rate="4xHDR"), *(c for c in cables[1:] if leaf not in (c.a.guid, c.b.guid))],
    )
    faults = comparison.list_faults()
    assert [(fault.severity, len(fault.nodes), fault.gbps) for fault in faults] == [
        ("degraded", 6, 5600), ("degraded", 1, 200),
    ]  # fmt: skip
    assert [comparison.discrepancies[fault.members[0]].kind for fault in faults] == ["device-missing", "degraded"]


def test_a_leaf_of_many_nodes_is_worse_than_one_of_few():
    tree = fat_tree(units=1, nodes=18, rails=2)
    leaf = next(guid for guid, device in tree.devices.items() if device.name == "leaf-0-0")
    (ticket,) = make_cabling_tickets(look(tree, lambda cables: [c for c in cables if leaf not in (c.a.guid, c.b.guid)]))
    assert ticket.severity == "catastrophic"


def test_a_moved_node_is_one_ticket_with_its_list_of_plugs(small):
    own = {cable.a.port_id for cable in small.cables_of_node("n02")}

    def move(cables):
        return [c._replace(b=PortId(c.b.guid, c.b.number + 5)) if c.a in own else c for c in cables]

    (ticket,) = make_cabling_tickets(look(small, move))
    assert (ticket.title, ticket.node, ticket.severity) == (
        "Move the plug to its port: Node in other ports, n02, 4 plugs",
        "n02",
        "informational",
    )
    assert sum(step.startswith("move the plug from") for step in ticket.steps.splitlines()) == 4


def test_many_cables_of_a_switch_without_link_are_one_ticket(small):
    spine = small.cables[-1].b.guid
    lost = [number for number, cable in enumerate(small.cables) if cable.b.guid == spine][::2]
    (ticket,) = make_cabling_tickets(look(small, without(*lost)))
    assert ticket.title == f"Mend what these links share: No link, {len(lost)} cables of spine-2"


def test_every_kind_has_a_title_and_a_cause():
    assert set(ORDERS) == set(LIKELY_CAUSES) == set(get_args(DiscrepancyKind))


def test_tickets_survive_json(small):
    (ticket,) = make_cabling_tickets(look(small, swap_two))
    assert from_json(Ticket, to_json(ticket)) == ticket


def tickets_with(plan, cables, extra=()):
    return make_cabling_tickets(compare_cabling(plan, in_reach(plan, cables, extra)))


@pytest.mark.parametrize(
    ("name", "tickets"), [("MT4129 ConnectX7   Mellanox Technologies", 1), ("localhost mlx5_0", 1), ("other mlx5_0", 2)]
)
def test_a_new_adapter_without_a_host_beside_a_silent_one_is_one_ticket(name, tickets):
    plan = fat_tree(units=2, nodes=4, rails=3)
    lost, *others = as_built(plan)
    new = DiscoveredDevice("0xe000000000000001", "hca", 1, name)
    moved = [*others, DiscoveredCable(PortId(new.guid, 1), PortId(lost.b.guid, 40), RATE)]
    made = tickets_with(plan, moved, [new])
    assert len(made) == tickets
    if tickets == 1:
        assert (
            made[0].title
            == "Mend what these links share: No link of n000 mlx5_0, and a new adapter in another port of leaf-0-0"
        )


def test_a_cable_whose_ends_report_different_rates_is_one_ticket_that_tells_both():
    plan = fat_tree(units=1, nodes=3, rails=3)
    seen = in_reach(plan, as_built(plan))
    text = format_net_file(seen.devices, seen.cables).replace("4xNDR", "1xNDR", 1)
    (ticket,) = make_cabling_tickets(compare_cabling(plan, read_topology(text)))
    assert "1xNDR instead of 4xNDR" in ticket.seen
    assert ticket.seen.count("reports 1xNDR") == ticket.seen.count("reports 4xNDR") == 1
    (pasted,) = make_cabling_tickets(compare_cabling(plan, read_topology(f"$ ibnetdiscover\n{text}")))
    assert pasted.seen == ticket.seen
