"""Each kind of fault of each kind of part is named, and nobody else: from recorded lines, and with real processes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from assay.model.errors import AssayError
from assay.model.facts import format_compact
from assay.validate.collectives import cpu_workload
from assay.validate.collectives.fabric_map import FabricMap
from assay.validate.collectives.report import CollectivesReport, build_report, build_staged_report
from assay.validate.collectives.result_file import ResultFile, SearchHeader
from assay.validate.collectives.results import parse_result
from assay.validate.collectives.run import (
    RunLimits,
    choose_stages,
    make_cpu_workload,
    make_runners,
    make_speed_rule,
    run_search,
)
from assay.validate.collectives.search import CollectiveSearch, SearchResults, StagedSearch
from tests.support.places import ROOT
from tests.validate.collectives.searched_fabrics import fabric_of, play

RAILS = 4
SYMPTOMS = {"slow": "slow", "hung": "hung", "dead": "died", "wrong": "wrong"}
TABLE = [
    ("node", "n103", fault, by_rail)
    for by_rail in (False, True)
    for fault in ("slow", "hung", "dead", "wrong", "slow~", "hung~", "dead~", "wrong~")
] + [
    (kind, name, fault, True)
    for kind, name in (("adapter", "n103 rail 2"), ("uplink", "leaf1-r2[3]"))
    for fault in ("slow", "hung", "dead", "wrong", "hung~", "dead~")
]
"""What is faulty, how (`~`: in 70 % of the runs), and whether each rail is measured apart."""


def recorded(fabric: FabricMap, faulty: dict[str, str], by_rail: bool, seed: int) -> CollectivesReport:
    """Return the report of a search whose results went through a file."""
    search = CollectiveSearch(fabric, list(fabric.nodes), seed)
    lines = [format_compact(one) for one in play(search, faulty, range(RAILS) if by_rail else ())]
    return build_report(fabric, search.nodes, [parse_result(json.loads(line)) for line in lines], search.rule)


@pytest.mark.parametrize(("kind", "name", "fault", "by_rail"), TABLE)
def test_the_faulty_part_is_named_with_what_it_does_and_nobody_else(
    kind: str, name: str, fault: str, by_rail: bool
) -> None:
    report = recorded(fabric_of([8, 8, 8, 8], rails=RAILS if by_rail else 1), {name: fault}, by_rail, 7)
    assert [(one.part.kind, one.part.name) for one in report.named] == [(kind, name)]
    assert report.named[0].symptom.startswith(SYMPTOMS[fault.rstrip("~")])


@pytest.mark.parametrize("by_rail", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_of_a_healthy_fabric_nobody_is_named(by_rail: bool, seed: int) -> None:
    report = recorded(fabric_of([8, 8, 8, 8], rails=RAILS if by_rail else 1), {}, by_rail, seed)
    assert (report.named, report.undecided, report.transient) == ((), (), ())


def test_two_bad_adapters_of_eight_are_two_adapters_and_four_are_a_bad_node() -> None:
    fabric = fabric_of([8, 8, 8, 8], rails=8)
    search = CollectiveSearch(fabric, list(fabric.nodes), 3)
    for count, expected in ((2, {"n103 rail 0", "n103 rail 1"}), (4, {"n103"})):
        results = play(search, {f"n103 rail {rail}": "slow" for rail in range(count)}, range(8))
        report = build_report(fabric, search.nodes, results, search.rule)
        assert {one.part.name for one in report.named} == expected


def test_a_healthy_partner_of_an_intermittent_node_is_not_named() -> None:
    fabric = fabric_of([8, 8, 8, 8], rails=RAILS)
    for seed in range(10):
        report = recorded(fabric, {"n103": "wrong~", "n205": "slow"}, True, seed)
        assert {one.part.name for one in report.named} <= {"n103", "n205"}


@pytest.mark.slow(minutes=2)
def test_real_processes_of_all_stages_name_nodes_adapters_and_links(tmp_path: Path) -> None:
    """Nodes: one wrong alone, one slow, one wrong now and then. An adapter hangs. A link is slow for who crosses it."""
    fabric = fabric_of([6, 6, 6, 6], rails=2)
    uplink = "leaf2-r0[1]"
    crossing = [
        f"{a}&{b}:0=slow"
        for a in fabric.nodes
        for b in fabric.nodes
        if a < b and uplink in {part.name for part in fabric.list_uplinks_between(a, b, 0)}
    ]
    plants = ["n002:alone=wrong", "n103=slow", "n304:1=hung", "n205=wrong~0.8", *crossing]
    workload = make_cpu_workload(plants, 8, rails=True)
    runners, rule = make_runners(workload, RunLimits(at_once=4)), make_speed_rule(workload)
    search = StagedSearch(fabric, list(fabric.nodes), 5, rule, choose_stages(workload, "last"))
    file = ResultFile(tmp_path / "results.jsonl")
    file.continue_or_start(SearchHeader(tuple(fabric.nodes), 5, "", (0, 1), rule, search.stages))
    report = build_staged_report(search, run_search(search, (0, 1), runners, file, SearchResults([]), lambda *_: None))
    named = {(one.part.kind, one.part.name): one.symptom for one in report.named}
    assert named.pop(("node", "n002")) == "wrong alone"
    assert named.pop(("node", "n103")).startswith("slow")
    assert named.pop(("node", "n205")).startswith("wrong")
    assert named.pop(("adapter", "n304 rail 1")).startswith("hung")
    assert named.pop(("uplink", uplink)) == "slow"
    assert named == {}


@pytest.mark.slow
def test_real_processes_that_fail_only_together_are_narrowed_down(tmp_path: Path) -> None:
    fabric = FabricMap.without_design([f"n{at}" for at in range(6)])
    workload = make_cpu_workload(["n1+n4=wrong"], 20)
    runners = make_runners(workload, RunLimits(at_once=3))
    search = StagedSearch(fabric, list(fabric.nodes), 5, stages=choose_stages(workload, "last"))
    file = ResultFile(tmp_path / "results.jsonl")
    file.continue_or_start(SearchHeader(tuple(fabric.nodes), 5, "", (), search.rule, search.stages))
    report = build_staged_report(search, run_search(search, (), runners, file, SearchResults([]), lambda *_: None))
    assert report.named == ()
    assert [block.name for block in report.stages.needed_blocks] == ["n1", "n4"]
    assert ResultFile(file.path).read()[1].groups, "the runs of groups are in the file"


@pytest.mark.parametrize(
    ("text", "nodes", "rail", "is_met"),
    [
        ("a=slow", "ab", None, True),
        ("a=slow", "a", None, False),
        ("a:alone=slow", "a", None, True),
        ("a:alone=slow", "ab", None, True),
        ("a:2=slow", "ab", 2, True),
        ("a:2=slow", "ab", 1, False),
        ("a:2=slow", "ab", None, True),
        ("a&b=slow", "ab", None, True),
        ("a&b=slow", "ac", None, False),
        ("a&b:1=slow", "ab", 0, False),
        ("a+b=slow", "ab", None, False),
        ("a+b=slow", "abc", None, True),
        ("a=slow~0.0", "ab", None, False),
    ],
)
def test_a_fault_is_planted_where_it_is_told(text: str, nodes: str, rail: int | None, is_met: bool) -> None:
    assert cpu_workload.parse_plant(text).is_met([*nodes], rail, "M1") is is_met


def test_every_shipped_workload_fills_in_all_its_words(tmp_path: Path) -> None:
    from assay.declare.loader import load_fleet
    from assay.validate.collectives.command import CommandTemplate, list_tasks
    from assay.validate.collectives.results import GroupRound
    from assay.validate.collectives.rounds import PairRound

    tasks = {
        "pair": list_tasks(PairRound("M1", (("n1", "n2"),)), [3])[0],
        "alone": list_tasks(GroupRound("G1", (("n1",),)), ())[0],
        "together": list_tasks(GroupRound("W1", (("n1", "n2", "n3"),)), ())[0],
    }
    workloads = load_fleet(ROOT).collective_workloads
    assert {"nccl-srun", "nccl-srun-by-rail", "nccl-mpirun", "nccl-kubernetes", "virtual"} <= workloads.keys()
    for workload in workloads.values():
        make_runners(workload, RunLimits(scratch=tmp_path))
        for name, task in tasks.items():
            if command := getattr(workload, name):
                template = CommandTemplate(
                    tuple(command.command), tuple(workload.adapters), gpus={"n1": 4, "n2": 8, "n3": 8}
                )
                words = template.fill(task, Path("/s/1.json"), 90)
                assert not any("{" in word for word in words), f"{workload.name}: {words}"
                assert any("n1" in word for word in words)
                assert "nccl" not in workload.name or any("4" in word for word in words), "as many as all have"
    with pytest.raises(AssayError, match="CollectiveWorkload nccl-mpirun: there is no folder /shared/assay"):
        make_runners(workloads["nccl-mpirun"], RunLimits())
    by_rail = workloads["nccl-srun-by-rail"]
    words = CommandTemplate(tuple(by_rail.pair.command), tuple(by_rail.adapters)).fill(tasks["pair"], Path("o"), 9)
    assert "NCCL_IB_HCA==mlx5_3" in words
    assert workloads["virtual"].pair.command[0] == "{python}"
    assert CommandTemplate(("{python}",)).fill(tasks["pair"], Path("o"), 9) == [sys.executable]
