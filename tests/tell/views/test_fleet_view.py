"""The view of the fleet: how each node stands, where it stands, what is new and what waits for whom."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from assay.decide.rollouts.rollout_history import RolloutHistory
from assay.declare.loader import load_fleet
from assay.model.fleet import Fleet
from assay.model.text.lists import sort_naturally
from assay.model.timestamps import format_time
from assay.tell.views.fleet import FleetFilter, build_fleet_view, list_cells
from assay.tell.views.fleet_news import build_fleet_news
from assay.tell.views.incident_story import NodeStory
from assay.tell.views.next_step import NextStep
from assay.tell.views.node_status import STANDING_LETTERS, STANDING_WORDS, STANDINGS, find_standing
from tests.decide.conftest import Paper, catalog, policy, profiles  # noqa: F401 — the policy and the catalogue are real
from tests.support.places import ROOT


@pytest.fixture
def paper(policy, catalog, profiles) -> Paper:  # noqa: F811
    paper = Paper(policy, catalog, profiles)
    for number in range(1, 9):
        paper.add(f"n{number}", rack=f"r{number // 4 * 10 + 2}", pool="a" if number < 5 else "b")
    return paper


def fleet_of(paper: Paper, tmp_path, *more: str) -> Fleet:
    first = next(iter(paper.nodes.values()))
    extra = {name: replace(first, name=name) for name in more}
    specs = {first.spec: load_fleet(ROOT).node_specs["hgx-h100"]}
    return Fleet(tmp_path, {**paper.nodes, **extra}, specs, policies={"default": paper.policy})


def standings(paper: Paper, tmp_path) -> dict[str, str]:
    return {cell.name: cell.standing for cell in list_cells(fleet_of(paper, tmp_path, "new"), paper.stories().values())}


def test_each_standing_has_a_word_and_a_letter_of_its_own() -> None:
    assert set(STANDINGS) == set(STANDING_WORDS) == set(STANDING_LETTERS)
    assert len(set(STANDING_LETTERS.values())) == len(STANDINGS)


def test_a_node_stands_as_its_state_and_its_people_say(paper: Paper, tmp_path) -> None:
    paper.add("tested", "test")
    paper.add("broken", "triage")
    paper.add("old", "retired")
    paper.jobs["n1"] = ("a job",)
    paper.fault("n1", "gpu.nvlink.down", "gpu2")
    paper.step()
    paper.say("hold", "n2")
    found = standings(paper, tmp_path)
    wanted = {"n1": "closing", "n2": "held", "n3": "serving", "tested": "work", "broken": "people", "old": "gone"}
    assert {name: found[name] for name in wanted} == wanted
    assert found["new"] == "unseen"


def test_gpus_in_service_are_counted_and_those_of_nodes_that_are_well(paper: Paper, tmp_path) -> None:
    paper.fault("n1", "gpu.nvlink.down", "gpu2")
    paper.add("broken", "triage")
    fleet = fleet_of(paper, tmp_path)
    states, read = paper.stories().values(), set(paper.stories())
    cells = list_cells(fleet, states, {"n2": ""}, read=read)
    assert build_fleet_view(fleet, cells).gpus == (8 * 8, 6 * 8)
    new = list_cells(fleet, states, {"n2": ""}, read=read - {"n3"})
    assert build_fleet_view(fleet, new).gpus == (8 * 8, 5 * 8), "of a node that was never read nobody knows"
    assert build_fleet_view(fleet, cells, FleetFilter(pool="b")).gpus == (4 * 8, 4 * 8)


def test_a_state_that_no_policy_has_waits_for_people(paper: Paper) -> None:
    assert find_standing(paper.story("n1"), None) == "people"


def test_racks_are_in_the_order_of_their_numbers_and_the_highest_unit_is_first(paper: Paper, tmp_path) -> None:
    fleet = fleet_of(paper, tmp_path)
    nodes = {name: replace(node, u=number) for number, (name, node) in enumerate(fleet.nodes.items())}
    fleet = replace(fleet, nodes=nodes)
    racks = build_fleet_view(fleet, list_cells(fleet, paper.stories().values())).sites["lab1"]
    assert [rack.name for rack in racks] == ["r2", "r12", "r22"]
    assert [node.name for node in racks[0].nodes] == ["n3", "n2", "n1"]
    assert sort_naturally("r9") < sort_naturally("r10")


def test_a_filter_takes_nodes_and_leaves_the_totals(paper: Paper, tmp_path) -> None:
    paper.fault("n1", "gpu.nvlink.down", "gpu2")
    fleet = fleet_of(paper, tmp_path)
    view = build_fleet_view(fleet, list_cells(fleet, paper.stories().values()), FleetFilter(pool="a", text="n1"))
    assert (view.shown, view.total, view.pools) == (1, 8, {"a": 4, "b": 4})
    assert not view.sites["lab1"][0].is_well


def test_news_tell_what_moved_and_waits(paper: Paper, catalog, tmp_path) -> None:  # noqa: F811
    for number in range(11, 31):  # limits count them
        paper.add(f"n{number}", rack=f"r{number}", pool="b")
    paper.fault("n1", "gpu.xid.79", "gpu2")
    paper.step()
    paper.later(hours=30)
    since = format_time(paper.now - timedelta(hours=24))
    paper.fault("n5", "gpu.xid.79", "gpu2")
    paper.step()
    paper.say("hold", "n3", who="ann", reason="RCA")
    fleet = fleet_of(paper, tmp_path)
    paper.say("move", "n7", to="triage", who="ann", reason="a look at its cables")
    paper.step()
    states = list(paper.stories().values())
    stories = {"n3": NodeStory(next=NextStep("ann", "release the node", "RCA", ""))}
    news = build_fleet_news(catalog, states, list_cells(fleet, states), [], RolloutHistory(), stories, since)
    (group,) = news.incidents
    assert (group.title, group.holders, group.is_over) == (
        f"{catalog.describe('gpu.xid.79')} (gpu.xid.79)",
        ("n5",),
        False,
    )
    (incident,) = group.members
    assert incident.now == next(state.state for state in states if state.node == "n5") != "production"
    assert [node for node, _ in news.moves] == ["n7"], "n5 moved because of its incident"
    assert "a look at its cables" in news.moves[0][1]
    assert ("ann", "release the node", (("n3", "RCA"),)) in [(one.who, one.task, one.nodes) for one in news.waiting]
    assert news.rollout is None
