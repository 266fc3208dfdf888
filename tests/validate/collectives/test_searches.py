"""A search names exactly what is faulty, says what it could not tell, and claims no coverage that it does not have."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from assay.cli.verbs.collectives import format_report
from assay.validate.collectives.fabric_map import FabricMap, FabricPart
from assay.validate.collectives.faulty_part_search import explain
from assay.validate.collectives.judging import PairObservation, SpeedRule
from assay.validate.collectives.report import CollectivesReport, build_report
from assay.validate.collectives.results import PairResult
from assay.validate.collectives.search import CollectiveSearch
from tests.validate.collectives.searched_fabrics import fabric_of, play

FAULTS = ("slow", "hung", "dead", "wrong")


def report_on(search: CollectiveSearch, results: list[PairResult]) -> CollectivesReport:
    return build_report(search.fabric, search.nodes, results, search.rule)


def named(report: CollectivesReport) -> set[str]:
    return {one.part.name for one in report.named}


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 10_000), count=st.integers(0, 3))
@example(seed=1, count=3)
def test_faulty_nodes_are_named_and_nobody_else(seed: int, count: int) -> None:
    fabric = fabric_of([8, 7, 8, 6])
    chance = random.Random(seed)
    faulty = {name: chance.choice(FAULTS) for name in chance.sample(sorted(fabric.nodes), count)}
    search = CollectiveSearch(fabric, list(fabric.nodes), seed)
    report = report_on(search, play(search, faulty))
    told = named(report) | {part.name for case in report.undecided for part in case.suspects}
    assert named(report) <= faulty.keys(), "nobody is named falsely"
    assert faulty.keys() <= told, "and no faulty node is passed over"


@pytest.mark.parametrize("fault", ["slow", "hung"])
def test_an_uplink_is_named_and_not_the_nodes_that_used_it(fault: str) -> None:
    fabric = fabric_of([8, 8, 8, 8])
    search = CollectiveSearch(fabric, list(fabric.nodes), 5)
    report = report_on(search, play(search, {"leaf1-r0[3]": fault}))
    assert named(report) == {"leaf1-r0[3]"}
    assert report.undecided == ()


def test_one_rail_of_a_node_is_named_and_not_the_node() -> None:
    fabric = fabric_of([6, 6, 6], rails=4)
    search = CollectiveSearch(fabric, list(fabric.nodes), 2)
    report = report_on(search, play(search, {"n103 rail 2": "slow"}, rails=range(4)))
    assert [(one.part.kind, one.part.name) for one in report.named] == [("adapter", "n103 rail 2")]
    assert report.coverage.keys() == {"nodes", "adapters", "uplinks"}


def test_a_node_that_is_bad_on_all_rails_is_named_once() -> None:
    fabric = fabric_of([6, 6, 6], rails=4)
    search = CollectiveSearch(fabric, list(fabric.nodes), 2)
    report = report_on(search, play(search, {"n103": "hung"}, rails=range(4)))
    (node,) = report.named
    assert (node.part.kind, node.part.name) == ("node", "n103")
    assert len({one.pair for one in node.evidence}) == len(node.evidence) == node.tests, "a pair counts once"


def test_uplinks_of_rails_that_were_measured_together_cannot_be_told_apart() -> None:
    fabric = fabric_of([8, 8, 8, 8], rails=2)
    search = CollectiveSearch(fabric, list(fabric.nodes), 5)
    report = report_on(search, play(search, {"leaf1-r1[3]": "slow"}))
    assert report.named == ()
    (case,) = report.undecided
    assert {part.name for part in case.suspects} == {"leaf1-r0[3]", "leaf1-r1[3]"}


def test_a_healthy_fabric_needs_three_rounds() -> None:
    fabric = fabric_of([8, 8])
    search = CollectiveSearch(fabric, list(fabric.nodes))
    report = report_on(search, play(search, {}))
    assert (report.rounds, report.named, report.undecided, report.transient) == (("M1", "M2", "M3"), (), (), ())


@pytest.mark.parametrize("ending", ["ok", "deadline"])
def test_a_pair_that_is_bad_once_is_no_verdict(ending: str) -> None:
    fabric = fabric_of([8, 8])
    search = CollectiveSearch(fabric, list(fabric.nodes))
    dipped = search.screening[2].pairs[0]
    results: list[PairResult] = []
    ended: set[str] = set()
    while planned := search.find_next_round(results, ended):
        for pair in planned.pairs:
            is_dip = (planned.name, pair) == ("M3", dipped)
            speed = 20.0 if is_dip else 40.0
            results.append(PairResult(planned.name, pair, ending if is_dip else "ok", gb_s=speed, wrong=0))
        ended.add(planned.name)
    report = report_on(search, results)
    assert report.rounds == ("M1", "M2", "M3", "C1", "C2", "C3")
    assert (report.named, report.undecided) == ((), ())
    assert [one.pair for one in report.transient] == [dipped]


def test_a_part_that_is_slow_in_half_of_its_pairs_is_named_from_three_on() -> None:
    part = FabricPart("node", "n1")
    for slow, named in ((2, False), (3, True)):
        runs = [
            PairObservation(
                f"M{at}", ("n1", f"p{at}"), "slow" if at < slow else "good", (part, FabricPart("node", f"p{at}"))
            )
            for at in range(2 * slow)
        ]
        partners = [replace(one, verdict="good", parts=one.parts[1:]) for one in runs for _ in range(12)]
        assert bool(explain([*runs, *partners]).faulty) is named


def test_a_link_is_not_blamed_for_wrong_results_that_a_node_explains() -> None:
    node, link = FabricPart("node", "n1"), FabricPart("uplink", "leaf[1]")
    wrong = [PairObservation(name, ("n1", other), "wrong", (node, link)) for name, other in (("M1", "a"), ("M2", "b"))]
    good = [PairObservation(name, ("n1", other), "good", (node,)) for name, other in (("C1", "c"), ("C2", "d"))]
    (faulty,) = explain([*wrong, *good]).faulty
    assert (faulty.part, faulty.rivals) == (node, ())
    hung = [replace(one, verdict="hung") for one in wrong]
    (faulty,) = explain([*hung, *good]).faulty
    assert (faulty.part, faulty.rivals) == (link, ()), "a node that hangs would hang under its own leaf too"


def test_two_nodes_alone_cannot_be_told_apart() -> None:
    fabric = FabricMap.without_design(["a", "b"])
    search = CollectiveSearch(fabric, ["a", "b"])
    report = report_on(search, play(search, {"a": "hung"}))
    assert report.named == ()
    assert "no pair was good" in report.undecided[0].reason
    assert "one of node a, node b" in format_report(report)


def test_where_nothing_works_nobody_is_named() -> None:
    fabric = fabric_of([4, 4])
    search = CollectiveSearch(fabric, list(fabric.nodes))
    report = report_on(search, play(search, dict.fromkeys(fabric.nodes, "dead")))
    assert report.named == ()
    assert "command" in report.undecided[0].reason


def test_what_was_not_measured_is_neither_good_nor_bad() -> None:
    fabric = fabric_of([4, 4])
    search = CollectiveSearch(fabric, list(fabric.nodes))
    results = [PairResult("M1", pair, "preempted") for pair in search.screening[0].pairs]
    report = report_on(search, results)
    assert (report.named, report.undecided) == ((), ())
    assert report.unmeasured == {"not measured: preempted": 4}
    assert "0 of 8 nodes (0 %)" in format_report(report)


def test_few_pairs_have_no_usual_speed_unless_it_is_given() -> None:
    fabric = FabricMap.without_design(["a", "b"])
    results = [PairResult("M1", ("a", "b"), "ok", gb_s=3.0, wrong=0)]
    unknown = build_report(fabric, ["a", "b"], results, SpeedRule())
    assert unknown.unmeasured
    slow = build_report(fabric, ["a", "b"], results, SpeedRule(expected_gb_s=40))
    assert "0.07 of the expected speed" in format_report(slow)


def test_coverage_counts_what_busy_nodes_leave_out() -> None:
    fabric = fabric_of([8, 8, 8, 8])
    free = [name for name in fabric.nodes if name[2:] in ("00", "01")]
    search = CollectiveSearch(fabric, free)
    report = report_on(search, play(search, {}))
    uplinks = report.coverage["uplinks"]
    assert (uplinks.reachable, uplinks.total) == (8, 32)
    assert uplinks.exercised <= uplinks.reachable
    assert "the free nodes cannot exercise 24 of them" in format_report(report)


def test_results_without_a_check_are_counted() -> None:
    fabric = fabric_of([4, 4])
    search = CollectiveSearch(fabric, list(fabric.nodes))
    results = [PairResult("M1", pair, "ok", gb_s=40.0) for pair in search.screening[0].pairs]
    assert "4 results were not checked" in format_report(report_on(search, results))
