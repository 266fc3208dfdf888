"""Sick NVLinks of many nodes of a rack that is one machine are one ticket, which names the switch tray or the rack."""

from __future__ import annotations

from assay.act.tickets.desired_tickets import list_desired_tickets
from assay.decide.faults.shared_incidents import map_open_incidents
from assay.decide.moves.circuit_breaker import find_new_waves
from assay.decide.state.fleet_snapshot import SWITCH_TRAY
from tests.fabric.nvlink_racks import NODES

ACT = "ook at the switch tray, its cartridge and its log, before any GPU: NVLink domain lab1/r07"
TRAY = {name: frozenset({(SWITCH_TRAY, "nvswitch-5"), ("spec", "gb200-nvl72")}) for name in NODES}


def fail(paper, nodes=NODES, *, kind="gb200-nvl72", gpus=4, pool="a"):
    for name in NODES:
        paper.add(name, rack="r07", kind=kind, pool=pool)
    for name in nodes:
        for gpu in range(gpus):
            paper.fault(name, "gpu.nvlink.errors", f"gpu{gpu}")
        paper.later(seconds=20)


def tickets(paper, traits):
    return list_desired_tickets(paper.situation(traits=traits), frozenset(), {})


def test_eighteen_nodes_are_one_ticket_that_names_the_switch_tray(paper):
    fail(paper)
    (ticket,) = tickets(paper, TRAY)
    assert ticket.title == f"L{ACT}, switch tray nvswitch-5"
    assert [place.device for place in ticket.places] == NODES
    (wave,) = find_new_waves(paper.situation(traits=TRAY)).values()
    assert "; likely behind it: switch tray nvswitch-5 (18 of 18); or " in wave


def test_the_ticket_stays_when_the_tray_is_known_later_and_a_breaker_holds_the_nodes(paper):
    fail(paper)
    assert [each.title for each in tickets(paper, {})] == [f"L{ACT}"]
    assert [each.key for each in tickets(paper, {})] == [each.key for each in tickets(paper, TRAY)]
    paper.step()
    (held,) = tickets(paper, TRAY)
    assert held.title == f"Find the cause, or clear the breaker: l{ACT}, switch tray nvswitch-5"
    assert {place.device for place in held.places} == {*NODES}


def test_sick_links_of_a_tray_of_four_gpus_are_one_incident(paper):
    fail(paper, NODES[:1])
    (incident,) = map_open_incidents(paper.situation())[NODES[0]]
    assert len(incident.symptoms) == 4


def test_no_switch_tray_is_blamed_for_few_nodes_or_for_nodes_that_share_none(paper):
    fail(paper, NODES[:8], gpus=1)
    assert all("switch tray" not in each.title for each in tickets(paper, TRAY)), "8 of 18 are no half of the rack"
    fail(paper, kind="hgx-h100", pool="b")
    assert all("switch tray" not in each.title for each in tickets(paper, {})), "each board has its own NVSwitches"
