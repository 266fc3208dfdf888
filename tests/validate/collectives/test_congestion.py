"""What other traffic explains, and what it does not."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from assay.validate.collectives.congestion import MOST_BY_CHANCE, Traffic, Trial
from assay.validate.collectives.fabric_map import FabricPart
from assay.validate.collectives.faulty_part_search import explain
from assay.validate.collectives.judging import PairObservation, SpeedRule
from assay.validate.collectives.report import build_report
from assay.validate.collectives.results import PairResult, PairVerdict
from assay.validate.collectives.search import CollectiveSearch
from bench.congestion import World, report_on
from tests.validate.collectives.searched_fabrics import fabric_of


def count_by_chance(verdicts: Sequence[PairVerdict], slow_others: int, others: int = 400) -> float:
    """Return how many sound parts would look as bad as one with these runs, beside so many other parts of two runs."""
    own = [Trial(("suspect",), (), verdict) for verdict in verdicts]
    rest = [
        Trial((f"n{at}",), (), "slow" if at < slow_others and run else "good") for at in range(others) for run in (0, 1)
    ]
    return Traffic([*own, *rest]).count_by_chance(range(len(own)))


@pytest.mark.parametrize(
    ("slow", "good", "slow_others", "is_named"),
    [(3, 3, 0, True), (6, 0, 0, True), (6, 0, 40, True), (3, 3, 40, False), (4, 2, 40, False), (6, 0, 240, False)],
)
def test_as_much_is_needed_as_traffic_does_not_explain(slow: int, good: int, slow_others: int, is_named: bool) -> None:
    verdicts: list[PairVerdict] = [*["slow"] * slow, *["good"] * good]
    assert (count_by_chance(verdicts, slow_others) <= MOST_BY_CHANCE) is is_named


def test_two_runs_that_hung_need_no_statistics() -> None:
    assert count_by_chance(["hung", "hung"], 240) == 0
    assert count_by_chance(["hung", "good"], 240) > MOST_BY_CHANCE


def test_runs_that_were_not_measured_say_nothing() -> None:
    assert count_by_chance(["slow", "slow", "unknown"], 0) == count_by_chance(["slow", "slow"], 0)


def test_sound_parts_look_bad_as_rarely_as_stated() -> None:
    """Of 400 sound parts with six runs each in traffic of 5 %, in 40 fabrics: at most one in twenty fabrics."""
    named = 0
    for seed in range(40):
        chance = random.Random(seed)
        trials = [Trial((at,), (), "slow" if chance.random() < 0.05 else "good") for at in range(400) for _ in range(6)]
        traffic = Traffic(trials)
        counts = (traffic.count_by_chance(range(6 * at, 6 * at + 6)) for at in range(400))
        named += sum(count <= MOST_BY_CHANCE for count in counts)
    assert named <= 2


def test_what_traffic_explains_almost_stays_open() -> None:
    part = FabricPart("node", "n1")
    own = [PairObservation(f"M{at}", ("n1", f"p{at}"), "slow" if at < 4 else "good", (part,)) for at in range(6)]
    rest = [
        PairObservation("M1", ("a", "b"), "slow" if at < 20 else "good", (FabricPart("node", f"q{at}"),))
        for at in range(400)
    ]
    explanation = explain([*own, *rest])
    assert (explanation.faulty, [doubtful.part for doubtful in explanation.doubtful]) == ((), [part])


@pytest.mark.parametrize("later", ["slow", "good"])
def test_an_open_part_goes_on_alone_until_it_is_decided(later: str) -> None:
    """From C4 on, only the open part runs, each time with another partner, until traffic explains it, or does not."""
    fabric = fabric_of([16, 16, 16, 16])
    search = CollectiveSearch(fabric, list(fabric.nodes), rule=SpeedRule())
    chance = random.Random(3)
    results: list[PairResult] = []
    ended: list[str] = []
    while planned := search.find_next_round(results, ended):
        is_late = planned.name in ("C4", "C5", "C6")
        assert not is_late or [("n103" in pair) for pair in planned.pairs] == [True]
        is_suspect_slow = later == "slow" if is_late else planned.name in ("M1", "M3", "C1", "C3")
        for pair in planned.pairs:
            is_slow = is_suspect_slow if "n103" in pair else chance.random() < 0.08
            results.append(PairResult(planned.name, pair, "ok", gb_s=28.0 if is_slow else 40.0, wrong=0))
        ended.append(planned.name)
    assert ended[6:], "four slow runs of six are no verdict in this traffic, and not nothing"
    report = build_report(fabric, search.nodes, results, search.rule)
    assert [one.part.name for one in report.named] == (["n103"] if later == "slow" else [])


def test_a_named_uplink_accuses_no_node() -> None:
    """In traffic of 5 %, what is slow beside a slow uplink leaves next to no node of 1,280 named or open."""
    named, accused = 0, 0
    for seed in range(20):
        world = World(64, "scattered", random.Random(f"an uplink {seed}"))
        world.faults[uplink := world.draw_uplink()] = 0.7
        report = report_on(world)
        named += uplink in {each.part.name for each in report.named}
        suspects = [part for case in report.undecided for part in case.suspects]
        accused += sum(part.kind == "node" for part in (*(each.part for each in report.named), *suspects))
    assert named >= 19
    assert accused <= 13, "one in a hundred"


def see(name: str, a: str, b: str, verdict: PairVerdict, *links: FabricPart) -> PairObservation:
    return PairObservation(name, (a, b), verdict, (FabricPart("node", a), FabricPart("node", b), *links))


def test_a_node_that_hung_over_a_hung_uplink_and_was_slow_once_is_not_named_for_it() -> None:
    uplink = FabricPart("uplink", "leaf3[6]")
    own = [
        see("M1", "n6", "x1", "hung", uplink),
        see("M2", "n6", "x2", "hung", uplink),
        see("M3", "n6", "p0", "slow"),
        *(see(f"C{at}", "n6", f"p{at}", "good") for at in (1, 2, 3)),
    ]
    rest = [
        see(f"M{turn}", f"a{at}", f"b{(at + 7 * turn) % 60}", "slow" if (at + turn) % 12 == 0 else "good")
        for turn in (1, 2, 3)
        for at in range(60)
    ]
    assert [each.part for each in explain([*own, *rest]).faulty] == [uplink]
