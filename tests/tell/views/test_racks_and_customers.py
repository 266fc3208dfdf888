"""The picture of a rack, with its gaps and the places of a ticket; and what customers are told of availability."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from assay.decide.state.node_state import NodeState, TransitionRecord
from assay.declare.loader import load_fleet
from assay.model.fleet import Fleet
from assay.model.ticket import TicketPlace
from assay.model.timestamps import NEVER
from assay.tell.customer.view import find_service_change, measure_availability
from assay.tell.views.fleet import draw_rack, draw_ticket_racks, find_racks, list_cells
from tests.decide.conftest import Paper, catalog, paper, policy, profiles  # noqa: F401 — the policy is the real one
from tests.support.places import ROOT

SERVING = {"production"}


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return load_fleet(ROOT)


def test_a_rack_is_drawn_from_the_top_with_the_units_between_its_nodes(fleet: Fleet) -> None:
    (rack,) = find_racks(list_cells(fleet, ()), "r02")
    slots = [(slot.u, slot.height, slot.label) for slot in draw_rack(fleet, rack).slots]
    assert slots == [
        (34, 8, "n0008"),
        (32, 2, ""),
        (24, 8, "n0007"),
        (22, 2, ""),
        (14, 8, "n0006"),
        (12, 2, ""),
        (4, 8, "n0005"),
    ]


def test_a_ticket_marks_its_places_in_every_rack_that_it_names(fleet: Fleet) -> None:
    places = [TicketPlace("n0009", "lab1", "r03", 4), TicketPlace("leaf-1", "lab1", "r99", 40), TicketPlace("nowhere")]
    pictures = draw_ticket_racks(fleet, list_cells(fleet, ()), places)
    marked = {(one.name, slot.label) for one in pictures for slot in one.slots if slot.is_marked}
    assert marked == {("r03", "n0009"), ("r99", "leaf-1")}


def test_availability_counts_from_when_a_node_first_served(paper: Paper) -> None:  # noqa: F811
    for number in range(30):
        paper.add(f"f{number}", rack=f"r{number}")
    paper.add("n1", rack="r-n1")
    began = paper.now
    paper.later(hours=6)
    paper.fault("n1", "gpu.xid.79", "gpu2")
    paper.step()
    paper.later(hours=2)
    found = measure_availability([paper.story("n1")], SERVING, began - timedelta(days=9), paper.now)
    assert found is not None
    assert (found.share, found.since, found.nodes) == (pytest.approx(0.75, abs=0.01), began, 1)


def test_availability_says_over_which_nodes_it_is(paper: Paper) -> None:  # noqa: F811
    paper.add("n1")
    paper.add("n2", "onboard")
    paper.later(days=3)
    paper.add("n3")
    paper.later(days=1)
    month = paper.now - timedelta(days=2)
    found = measure_availability([paper.story(name) for name in ("n1", "n2", "n3")], SERVING, month, paper.now)
    assert found is not None
    assert (found.share, found.since, found.nodes) == (1.0, month, 2)


def test_a_node_is_out_since_it_left_service_whatever_states_it_went_through() -> None:
    moves = [
        ("production", "production-reboot", 1),
        ("production-reboot", "draining", 2),
        ("draining", "production", 3),
    ]
    records = [TransitionRecord(f"2026-11-0{day}T00:00:00+00:00", origin, target) for origin, target, day in moves]
    state = NodeState("n1", "a", "production", "", "", "", "2026-10-01T00:00:00+00:00")
    found = [
        find_service_change(replace(state, transitions=tuple(records[:count])), {"production"})[:10]
        for count in range(4)
    ]
    assert found == ["2026-10-01", "2026-11-01", "2026-11-01", "2026-11-03"]


def test_time_in_which_nobody_knows_a_node_counts_in_neither(paper: Paper) -> None:  # noqa: F811
    for name in ("n1", "n2", "n3"):
        paper.add(name)
    began = paper.now
    paper.later(hours=2)
    since = paper.now
    paper.later(hours=6)
    unknown = {"n1": [(since, paper.now)], "n2": [(NEVER, paper.now)]}
    stories = [paper.story(name) for name in ("n1", "n2", "n3")]
    found = measure_availability(stories, SERVING, began, paper.now, unknown)
    assert found is not None
    assert (found.share, found.nodes, found.unknown_hours) == (1.0, 2, 6 + 8)
    alone = measure_availability(stories[1:2], SERVING, began, paper.now, unknown)
    assert alone is None, "of a node that was never read nothing is known"


def test_a_node_that_never_served_has_no_availability(paper: Paper) -> None:  # noqa: F811
    paper.add("n1", "onboard")
    paper.later(hours=6)
    assert measure_availability([paper.story("n1")], SERVING, paper.now - timedelta(days=1), paper.now) is None
