"""Every discrepancy is one ticket that a technician can work with, and the same one tomorrow."""

import pytest

from assay.fabric.compare import compare
from assay.fabric.discovery import Discovery, FoundCable, FoundDevice
from assay.fabric.tickets import tickets
from assay.model.ticket import Place, Ticket


def look(plan, change=lambda cables: cables, problems=()):
    cables = change([FoundCable(cable.a.at, cable.b.at, cable.rate) for cable in plan.cables])
    devices = {g: FoundDevice(g, d.kind, d.ports, d.description) for g, d in plan.devices.items()}
    return compare(plan, Discovery(cables, devices, problems))


def swap_two(cables):
    a, b, *rest = cables[2], cables[6], *cables[:2], *cables[3:6], *cables[7:]
    return [a._replace(b=b.b), b._replace(b=a.b), *rest]


def test_a_swap_is_one_ticket_that_names_four_ends(small):
    (ticket,) = tickets(look(small, swap_two))
    assert ticket.title == "Exchanged cables: n01 mlx5_2 and n02 mlx5_2"
    assert set(ticket.places) == {
        Place("n01 mlx5_2", "lab1", "r01", 4, "1", "R2"),
        Place("n02 mlx5_2", "lab1", "r01", 14, "1", "R2"),
        Place("leaf-1-2", "lab1", "r09", 12, "1", "1/1"),
        Place("leaf-1-2", "lab1", "r09", 12, "2", "1/2"),
    }
    assert ticket.node == ""
    assert ticket.verify == "fabric scan small"


def test_expected_and_seen_say_both_cables_in_words(small):
    (ticket,) = tickets(look(small, swap_two))
    assert "n01 mlx5_2 port R2 (r01 U4) – leaf-1-2 port 1/1 (r09 U12) at 4xNDR" in ticket.expected
    assert "n01 mlx5_2 port R2 (r01 U4) – leaf-1-2 port 1/2 (r09 U12) at 4xNDR" in ticket.seen


def test_the_next_scan_finds_the_same_ticket_whatever_else_changed(small):
    (first,) = tickets(look(small, swap_two))
    later = tickets(look(small, lambda cables: swap_two(cables)[:-1][::-1]))
    assert first.id in [ticket.id for ticket in later]
    assert first.key in [ticket.key for ticket in later]
    assert len({ticket.key for ticket in later}) == 2


def test_a_link_of_one_node_is_that_nodes_ticket(small):
    (ticket,) = tickets(look(small, lambda cables: cables[1:]))
    assert ticket.node == "n01"
    assert "no link" in ticket.seen


def test_a_cable_between_switches_is_no_nodes_ticket(small):
    (ticket,) = tickets(look(small, lambda cables: cables[:-1]))
    assert ticket.node == ""
    assert ticket.title == "No link: leaf-1-3 and spine-2"


def test_a_device_that_is_gone_is_one_place(small):
    gone = {cable.a.at for cable in small.of_node("n04")}
    (ticket,) = tickets(look(small, lambda cables: [c for c in cables if c.a not in gone]))
    assert ticket.places == (Place("n04", "lab1", "r01", 34),)
    assert (ticket.node, ticket.title) == ("n04", "Device not in the fabric: n04")


def test_a_degraded_link_says_both_rates(small):
    (ticket,) = tickets(look(small, lambda cables: [cables[0]._replace(rate="4xHDR"), *cables[1:]]))
    assert "at 4xNDR" in ticket.expected
    assert "runs at 4xHDR instead of 4xNDR" in ticket.seen


@pytest.mark.parametrize("change", [swap_two, lambda cables: cables[1:]])
def test_a_partial_discovery_becomes_no_ticket(small, change):
    assert tickets(look(small, change, problems=("timed out",))) == []


def test_a_clean_fabric_becomes_no_ticket(small):
    assert tickets(look(small)) == []


def test_tickets_survive_json(small):
    (ticket,) = tickets(look(small, swap_two))
    assert Ticket.from_json(ticket.as_json()) == ticket
