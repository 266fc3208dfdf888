"""Stages beside the pairs: nodes alone first, all nodes together, and blocks that fail only together."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.cli.verbs.collectives import format_report
from assay.model.errors import AssayError
from assay.model.facts import to_json
from assay.validate.collectives.fabric_map import FabricPart
from assay.validate.collectives.judging import GroupRule
from assay.validate.collectives.report import CollectivesReport, build_staged_report
from assay.validate.collectives.results import GroupResult, parse_group_result, read_results
from assay.validate.collectives.search import (
    ScaleFinding,
    ScaleQuestion,
    StagedSearch,
    StageSettings,
    find_next_question,
)
from tests.validate.collectives.searched_fabrics import fabric_of, play_stages

FAST = GroupRule(together_gb_s=40)


def search_of(units: list[int], whole: str = "last", gate: bool = True, rule: GroupRule = FAST) -> StagedSearch:
    fabric = fabric_of(units)
    return StagedSearch(fabric, list(fabric.nodes), 3, stages=StageSettings(gate, whole, rule))


def report_on(search: StagedSearch, faulty: dict[str, str], together: object = None) -> CollectivesReport:
    return build_staged_report(search, play_stages(search, faulty, together))


@pytest.mark.parametrize("fault", ["slow", "hung", "dead", "wrong"])
def test_a_node_that_fails_alone_is_named_as_such_and_takes_no_partner(fault: str) -> None:
    search = search_of([4, 4, 4])
    results = play_stages(search, {"n101 alone": fault})
    report = build_staged_report(search, results)
    [named] = report.named
    assert named.part == FabricPart("node", "n101")
    assert named.symptom == {"dead": "died alone"}.get(fault, f"{fault} alone")
    assert {one.round for one in named.evidence} == {"G1", "G2"}
    assert not any("n101" in one.pair for one in results.pairs)
    assert "each node alone: 11 good, 1 named" in format_report(report)
    nodes = report.coverage["nodes"]
    assert nodes.exercised == 12, "the node was measured, alone"


def test_a_node_that_fails_alone_once_keeps_its_partners_and_is_told() -> None:
    search = search_of([4, 4, 4])
    results = play_stages(search, {"n101 alone": "wrong"}, only_in="G1")
    report = build_staged_report(search, results)
    assert report.named == ()
    assert [one.round for one in results.groups if one.nodes == ("n101",)] == ["G1", "G2", "G3"]
    assert any("n101" in one.pair for one in results.pairs)
    assert "bad alone, and not named: n101" in format_report(report)


def test_where_no_node_is_good_alone_the_command_is_suspect_and_nobody_is_named() -> None:
    search = search_of([4, 4])
    report = report_on(search, {f"{name} alone": "dead" for name in search.nodes})
    assert report.named == ()
    assert "the command or its environment may be the cause" in format_report(report)


@pytest.mark.parametrize("rule", [GroupRule(), FAST])
def test_all_nodes_together_of_unknown_speed_are_not_called_good(rule: GroupRule) -> None:
    search = search_of([4, 4], rule=rule)
    verdict = build_staged_report(search, play_stages(search, {})).stages.together.verdict
    assert verdict == ("good" if rule.together_gb_s else "unjudged")


def test_after_a_node_was_named_all_others_run_together() -> None:
    search = search_of([4, 4, 4])
    results = play_stages(search, {"n002": "hung"})
    together = [one for one in results.groups if one.round.startswith("W")]
    assert [len(one.nodes) for one in together] == [11]
    assert build_staged_report(search, results).stages.together.verdict == "good"


def test_a_link_that_explains_failures_leaves_nothing_to_ask_of_all_nodes_together() -> None:
    search = search_of([8, 8, 8, 8])
    results = play_stages(search, {"leaf1-r0[3]": "slow"})
    report = build_staged_report(search, results)
    assert [one.part.name for one in report.named] == ["leaf1-r0[3]"]
    assert not any(one.round.startswith("W") for one in results.groups)


@pytest.mark.parametrize("needed", [("n000", "n303"), ("n100", "n102"), ("n203",)])
@pytest.mark.parametrize("fault", ["slow", "hung", "wrong"])
def test_what_fails_only_together_is_narrowed_to_its_blocks(needed: tuple[str, ...], fault: str) -> None:
    search = search_of([4, 4, 4, 4])

    def together(nodes: tuple[str, ...]) -> str:
        return fault if set(needed) <= set(nodes) and len(nodes) > 2 else ""

    report = report_on(search, {}, together)
    units = list(dict.fromkeys(f"leaf{name[1]}-r0" for name in needed))
    assert [block.name for block in report.stages.needed_blocks] == units
    assert report.named == (), "no node is guilty alone"
    assert "many nodes together fail" in format_report(report)
    assert to_json(report)["scale"]["enough"] is True


def test_all_nodes_together_that_were_bad_once_are_told_and_not_searched() -> None:
    search = search_of([4, 4])
    calls: list[int] = []

    def together(nodes: tuple[str, ...]) -> str:
        calls.append(len(nodes))
        return "hung" if len(calls) == 1 else ""

    report = report_on(search, {}, together)
    assert (report.stages.together.verdict, report.stages.scale, len(calls)) == ("once", None, 3)


def test_runs_that_were_preempted_are_no_answer() -> None:
    search = search_of([4, 4])
    report = report_on(search, {}, lambda nodes: "preempted")
    assert report.stages.together.verdict == "open"
    assert "could not tell" in format_report(report)


@settings(deadline=None)
@given(count=st.integers(2, 64), data=st.data())
def test_the_first_and_the_last_needed_block_are_found(count: int, data: st.DataObject) -> None:
    needed = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=3))
    answers: list[bool | None] = []
    while isinstance(question := find_next_question(count, answers), ScaleQuestion):
        answers.append(needed <= set(question.blocks))
    assert question.blocks == tuple(dict.fromkeys((min(needed), max(needed))))
    assert question.is_enough == (len(needed) < 3)


def test_one_wrong_answer_in_three_changes_nothing_and_no_answer_leaves_it_open() -> None:
    chance = random.Random(1)
    for first, last in ((0, 15), (3, 9), (7, 7)):
        answers: list[bool | None] = []
        while isinstance(question := find_next_question(16, answers), ScaleQuestion):
            right = {first, last} <= set(question.blocks)
            answers += chance.sample([right, right, not right], 3)[: 2 + (len(answers) % 2)]
            if answers[-2:] != [right, right]:
                answers.append(right)
        assert isinstance(question, ScaleFinding)
    assert find_next_question(16, [None, None, None]).is_open


def test_a_result_of_a_group_survives_its_line_and_another_line_is_refused() -> None:
    result = GroupResult("W1", ("a", "b", "c"), "ok", gb_s=391.5, wrong=0, note="fine")
    assert parse_group_result(to_json(result)) == result
    assert read_results([json.dumps({"round": "M1", "pair": ["a", "b"], "ended": "ok"})])[1] == []
    for wrong in ({"nodes": []}, {"nodes": ["a", "a"]}, {"nodes": ["a"], "round": "W1"}):
        with pytest.raises(AssayError, match=r"file:1: this is no result"):
            read_results([json.dumps(wrong)], "file")


def racks_of(count: int, whole: str = "last") -> StagedSearch:
    """Return a search of racks of six trays, two of which stand under one leaf; each rack is one NVLink domain."""
    fabric = fabric_of([12] * (count // 2), domain=6)
    return StagedSearch(fabric, list(fabric.nodes), 3, stages=StageSettings(True, whole, FAST))


@pytest.mark.parametrize("fault", ["slow", "hung", "wrong"])
def test_a_rack_that_is_bad_together_over_nvlink_is_named_as_one_and_its_trays_serve(fault: str) -> None:
    search = racks_of(8)
    sick = {name for name, node in search.fabric.nodes.items() if node.domain == "rack 1-0"}
    results = play_stages(search, {}, lambda nodes: fault if set(nodes) <= sick else "")
    report = build_staged_report(search, results)
    ((named),) = report.named
    assert (named.part, named.symptom) == (FabricPart("nvlink", "rack 1-0"), f"{fault} over NVLink")
    assert {one.round for one in named.evidence} >= {"R1", "R2"}
    assert [len(one.nodes) for one in results.groups if one.round == "R1"] == [6] * 8
    assert [one.nodes for one in results.groups if one.round == "R2"] == [tuple(sorted(sick))]
    assert "each rack over NVLink: 7 good" in format_report(report)
    (last,) = {one.nodes for one in results.groups if one.round.startswith("W")}
    assert not sick & set(last), "the others run together without it"


def test_a_switch_tray_that_slows_all_trays_of_a_rack_names_the_domain_and_none_of_them() -> None:
    search = racks_of(8)
    sick = {name for name, node in search.fabric.nodes.items() if node.domain == "rack 2-1"}
    report = report_on(search, {f"{name} alone": "slow" for name in sick} | {"n001 alone": "slow"})
    assert {(one.part, one.symptom) for one in report.named} == {
        (FabricPart("nvlink", "rack 2-1"), "slow over NVLink"),
        (FabricPart("node", "n001"), "slow alone"),
    }


def test_trays_that_are_bad_alone_are_named_and_the_rest_of_their_rack_runs_together() -> None:
    search = racks_of(8)
    results = play_stages(search, {"n001 alone": "hung", "n003 alone": "slow"})
    assert {one.part.name for one in build_staged_report(search, results).named} == {"n001", "n003"}
    assert ("n000", "n002", "n004", "n005") in {one.nodes for one in results.groups if one.round == "R1"}


@pytest.mark.parametrize(("count", "whole"), [(2, "last"), (8, "no")])
def test_racks_that_nothing_compares_with_are_not_named_and_without_many_nodes_none_runs(
    count: int, whole: str
) -> None:
    search = racks_of(count, whole)
    results = play_stages(search, {}, lambda nodes: "slow" if len(nodes) == 6 and nodes[0] == "n000" else "")
    assert not build_staged_report(search, results).named
    assert any(one.round == "R1" for one in results.groups) == (whole != "no")


def test_the_pairs_of_a_single_rack_run_over_nvlink_and_name_the_tray() -> None:
    fabric = fabric_of([18], domain=18)
    search = StagedSearch(fabric, list(fabric.nodes), 3, stages=StageSettings(True, "no", FAST))
    report = report_on(search, {"n007": "slow"})
    assert [one.part for one in report.named] == [FabricPart("node", "n007")]
