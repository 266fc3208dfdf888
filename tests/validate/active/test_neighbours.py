"""GPUs of other nodes are further voters; where they prove nothing, nothing is told. A rack of 72 votes as one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from assay.model.evidence import EvidenceDocument
from assay.model.reading import value
from assay.validate.active.golden import (
    NodeVotes,
    find_start,
    is_sound,
    parse_other_nodes,
    read_battery,
    read_other_nodes,
)
from assay.validate.active.run_verdict import OtherNodes, RunVerdict, judge_run
from assay.validate.active.unit_results import LoadRun
from tests.validate.active.battery_runs import make_branch, make_run

TRAY = ("NVIDIA GB200",) * 4
RIGHT, WRONG, OTHER = "aaaaaaaa", "bbbbbbbb", "cccccccc"
SICK = make_run({"gemm": {"7": [RIGHT, RIGHT, WRONG, RIGHT]}}, TRAY)
WELL = make_run({"gemm": {"7": RIGHT, "8": RIGHT}}, TRAY)


def judge(run: LoadRun, neighbours: Mapping[str, LoadRun]) -> RunVerdict:
    """Judge a run by the evidence that holds what neighbours computed."""
    counted = NodeVotes({name: [other] for name, other in neighbours.items()}).count_others("n1", run)
    evidence = EvidenceDocument("n1", datetime(2026, 11, 30, tzinfo=UTC), {"fleet": {"other_nodes": value(counted)}})
    return judge_run(run, others=read_other_nodes(evidence))


def named(verdict: RunVerdict) -> list[int]:
    return [place for place in range(len(verdict.run.devices)) if verdict.find_wrong_units(place)]


@pytest.mark.parametrize(
    ("digests", "guilty"),
    [
        ([RIGHT, RIGHT, WRONG, RIGHT], [2]),
        ([RIGHT, WRONG, WRONG, RIGHT], [1, 2]),
        ([RIGHT, WRONG, OTHER, RIGHT], [1, 2]),
    ],
)
def test_a_neighbour_that_agrees_with_half_of_a_tray_names_the_rest(digests: list[str], guilty: list[int]) -> None:
    run = make_run({"gemm": {"7": digests}}, TRAY)
    assert named(judge(run, {})) == []
    verdict = judge(run, {"n2": WELL})
    assert named(verdict) == guilty
    wrong = verdict.find_wrong_units(guilty[0])
    assert wrong
    assert "and by 4 GPUs of n2; wrong in" in wrong.describe(dict(enumerate("abcd")))


@pytest.mark.parametrize(
    ("digests", "neighbours"),
    [
        ([RIGHT, RIGHT, WRONG, RIGHT], {"n2": make_run({"gemm": {"8": RIGHT}}, TRAY)}),
        ([RIGHT, RIGHT, WRONG, RIGHT], {"n2": WELL, "n3": make_run({"gemm": {"7": WRONG}}, TRAY)}),
        ([RIGHT, RIGHT, WRONG, RIGHT], {"n2": make_run({"gemm": {"7": RIGHT}}, TRAY, {"driver": value("570.1")})}),
        ([RIGHT, RIGHT, WRONG, RIGHT], {"n2": make_run({"gemm": {"7": RIGHT}}, ("NVIDIA H100",) * 4)}),
        ([RIGHT, RIGHT, WRONG, RIGHT], {"n2": make_run({"gemm": {"7": WRONG}}, TRAY)}),
        ([RIGHT, WRONG, OTHER, "dddddddd"], {"n2": WELL}),
        ([RIGHT, None, WRONG, None], {"n2": WELL}),
    ],
    ids=["other seed", "they disagree", "driver", "kind", "most contradict it", "all differ", "silent"],
)
def test_where_nothing_independent_decides_nobody_is_named(digests: Any, neighbours: Mapping[str, LoadRun]) -> None:
    verdict = judge(make_run({"gemm": {"7": digests}}, TRAY), neighbours)
    assert named(verdict) == []
    assert all(verdict.find_doubt(place) for place in range(4))


def test_one_that_most_gpus_contradict_is_a_suspect_itself_and_named_so() -> None:
    doubt = judge(SICK, {"n2": make_run({"gemm": {"7": WRONG}}, TRAY)}).find_doubt(0)
    assert f"most GPUs computed {RIGHT}, and the digest of 4 GPUs of n2 is {WRONG}: suspects are the digest of" in doubt


@pytest.mark.parametrize(
    ("units", "kinds"),
    [
        ({"gemm": {"7": [RIGHT, RIGHT, RIGHT, None]}}, TRAY),
        ({"gemm": {"7": RIGHT, "8": [RIGHT, RIGHT, RIGHT, WRONG]}}, TRAY),
        ({"gemm": {"7": RIGHT}}, TRAY[:1]),
        ({}, TRAY),
    ],
)
def test_a_node_vouches_only_with_gpus_that_agree_on_everything(units: dict[str, Any], kinds: tuple[str, ...]) -> None:
    assert not is_sound(make_run(units, kinds))
    assert is_sound(WELL)


def test_a_battery_begins_where_that_of_the_neighbour_with_most_units_began() -> None:
    assert find_start({}) == find_start({"n2": [make_run({"gemm": {"0": RIGHT}}, TRAY)]}) == ""
    few = make_run({"gemm": {"90": RIGHT}}, TRAY)
    assert find_start({"n2": [few], "n3": [WELL]}) == "6:all"


def test_evidence_without_neighbours_or_without_a_battery_says_nothing() -> None:
    at = datetime(2026, 11, 30, tzinfo=UTC)
    assert read_other_nodes(EvidenceDocument("n1", at, {})) == OtherNodes()
    assert read_battery(EvidenceDocument("n1", at, {})) is None
    loaded = EvidenceDocument("n1", at, {"active": {"battery": make_branch({"gemm": {"7": RIGHT}}, TRAY)}})
    assert read_battery(loaded) == make_run({"gemm": {"7": RIGHT}}, TRAY)


TRAYS = [f"t{number:02}" for number in range(1, 19)]


def judge_rack(spoilt: Mapping[str, list[Any]]) -> dict[str, RunVerdict]:
    """Judge each tray of a rack, in which all GPUs but the spoilt trays' give the right digest."""
    runs = {name: make_run({"gemm": {"7": spoilt.get(name, RIGHT)}}, TRAY) for name in TRAYS}
    votes = NodeVotes({name: [run] for name, run in runs.items()})
    return {name: judge_run(run, others=parse_other_nodes(votes.count_others(name, run))) for name, run in runs.items()}


@pytest.mark.parametrize(
    "digests",
    [
        [RIGHT, RIGHT, WRONG, RIGHT],
        [WRONG, RIGHT, WRONG, RIGHT],
        [WRONG, OTHER, RIGHT, "dddddddd"],
        [WRONG, None, WRONG, None],
    ],
    ids=["one of 72", "a tie in a tray", "three that differ", "a tray that is half silent"],
)
def test_a_rack_of_72_names_the_guilty_gpus_of_a_tray_and_nobody_else(digests: list[str | None]) -> None:
    verdicts = judge_rack({"t05": digests})
    guilty = [place for place, digest in enumerate(digests) if digest not in (RIGHT, None)]
    assert {name: named(verdict) for name, verdict in verdicts.items() if named(verdict)} == {"t05": guilty}
    wrong = verdicts["t05"].find_wrong_units(guilty[0])
    assert wrong
    assert "by 68 GPUs of t01..t04, t06..t18" in wrong.describe(dict(enumerate("abcd")))
    assert not [name for name, verdict in verdicts.items() if verdict.suspicions]


@pytest.mark.parametrize("digests", [[WRONG] * 4, [WRONG, WRONG, RIGHT, WRONG]])
def test_a_tray_that_is_wrong_alike_is_the_suspect_and_none_of_its_gpus_is_named(digests: list[str]) -> None:
    verdicts = judge_rack({"t05": digests})
    assert not [name for name, verdict in verdicts.items() if named(verdict)]
    assert [name for name, verdict in verdicts.items() if verdict.suspicions] == ["t05"]
    (untold,) = verdicts["t05"].suspicions
    agreeing = digests.count(WRONG)
    theirs = f"68 GPUs of t01..t04, t06..t18 computed {RIGHT}"
    said = f"{agreeing} of 4 GPUs computed {WRONG}, and {theirs}: suspect is the node, or what else they share"
    assert untold.undecided == said


def test_in_a_rack_that_is_split_in_halves_nobody_is_named() -> None:
    verdicts = judge_rack(dict.fromkeys(TRAYS[:9], [WRONG] * 4))
    assert not [name for name, verdict in verdicts.items() if named(verdict)]


def test_votes_of_nodes_with_fewer_gpus_do_not_count() -> None:
    run = make_run({"collective": {"7": [RIGHT, RIGHT, WRONG, RIGHT]}}, TRAY)
    three = make_run({"collective": {"7": [OTHER] * 3}}, TRAY[:3])
    assert NodeVotes({"n2": [three]}).count_others("n1", run) == {"nodes": [], "digests": {}}
