"""Survival and positions: what is planted is found, moves and exchanges are followed, and the page shows it."""

from __future__ import annotations

import json
import math
import random
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trends.parts.planted_parts import PlantedParts, moment

from assay.model.specs.trend_rules import PositionDetector
from assay.starter.shipped_specs import find_trend_rules
from assay.trends.parts.part_risks import rank_risky_nodes, rank_table_positions
from assay.trends.parts.part_stays import FailedPart, FailureTimes, PartStay, guess_kind, list_lives
from assay.trends.parts.part_survival import KNOWN_TRAITS, measure_survival
from assay.trends.parts.position_hazard import rank_positions
from assay.trends.parts.survival_curves import Life
from assay.trends.parts.survival_page import render_survival
from assay.trends.peers.measurement_tables import TrendFiles, open_tables

RULES = PositionDetector()


@pytest.fixture
def planted(tmp_path: Path) -> PlantedParts:
    """Two deliveries of 200 GPUs, of which the second wears out on the last position."""
    parts, chance = PlantedParts(tmp_path), random.Random(2)
    for number in range(100):
        for place in range(4):
            node, subject, batch = f"n{number:03}", f"gpu{place}", "d2" if number >= 50 else "d1"
            parts.hold(node, subject, 0, batch=batch, rack=f"r{number // 10}")
            is_bad = batch == "d2" and place == 3
            fails = chance.weibullvariate(200 if is_bad else 4000, 3 if is_bad else 1)
            if fails < 400:
                parts.fail(node, subject, fails)
    return parts


def test_a_delivery_and_a_position_that_fail_sooner_are_told_apart(planted: PlantedParts) -> None:
    (gpus,) = planted.ask("parts", 400)["kinds"]
    assert (gpus["kind"], gpus["all"]["parts"]) == ("gpu", 400)
    compared = {one["by"]: one for one in gpus["comparisons"]}
    assert set(compared) == {"batch", "position"}, "all are of one SKU"
    assert compared["batch"]["log_rank_p"] < 1e-6
    shares = {one["name"]: one["curve"][-1][1] for one in compared["position"]["groups"]}
    assert min(shares, key=lambda name: shares[name]) == "gpu3"


def test_the_lines_and_the_page_say_the_same(planted: PlantedParts, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    told = planted.run("parts", 400, "--html", str(page), "--by", "batch").stdout
    assert "gpu: 400 parts, " in told
    assert "by batch: log-rank p" in told
    assert "by position" not in told
    html = page.read_text()
    assert html.count("<polyline") == html.count("<polygon") == 2
    assert "log-rank p" in html


def test_equal_deliveries_do_not_differ(tmp_path: Path) -> None:
    parts, chance = PlantedParts(tmp_path), random.Random(4)
    for number in range(400):
        parts.hold(f"n{number}", "gpu0", 0, batch=f"d{number % 2}", position="")
        parts.fail(f"n{number}", "gpu0", chance.weibullvariate(300, 1))
    (gpus,) = parts.ask("parts", 400)["kinds"]
    assert gpus["comparisons"][0]["log_rank_p"] > 0.01


def test_the_position_that_fails_more_often_is_named(planted: PlantedParts) -> None:
    high = planted.ask("", 300)["positions"]
    assert (high[0]["batch"], high[0]["position"]) == ("d2", "gpu3")
    assert high[0]["times_usual"] > 2
    assert all((one["batch"], one["position"]) == ("d2", "gpu3") for one in high)
    assert "gpu h100 d2 at position gpu3: " in planted.run("", 300).stdout


def test_nodes_with_such_a_position_are_ranked(planted: PlantedParts) -> None:
    holders, failures = (Path(word.partition("=")[2]) for word in planted.write())
    with open_tables(TrendFiles(None, holders, failures), moment(300)) as database:
        hazards = rank_table_positions(database, moment(300), find_trend_rules(None))
        risky = rank_risky_nodes(database, hazards, moment(300))
    assert set(risky) == {f"n{number:03}" for number in range(50, 100)}, "the second delivery"
    assert min(risky.values()) >= 2


def test_nothing_is_named_where_all_fail_alike(tmp_path: Path) -> None:
    parts, chance = PlantedParts(tmp_path), random.Random(8)
    for number in range(200):
        parts.hold(f"n{number}", f"gpu{number % 8}", 0)
        parts.fail(f"n{number}", f"gpu{number % 8}", chance.expovariate(1 / 300))
    assert parts.ask("", 300)["positions"] == []


def stay(serial: str, since: float, until: float, **other: str) -> PartStay:
    said = {
        "node": "a",
        "subject": "gpu0",
        "kind": "gpu",
        "sku": "",
        "batch": "",
        "rack": "r1",
        "position": "p",
    } | other
    return PartStay(**said, serial=serial, since=since, until=until)  # type: ignore[arg-type]


def test_a_part_that_moves_takes_its_age_along() -> None:
    stays = [stay("S", 0, 10), stay("S", 30, 100, node="b", position="q")]
    failures = FailureTimes.collect([FailedPart(50, "b", "gpu0", "x"), FailedPart(60, "b", "gpu0", "x")])
    told = [(one.position, life) for one, life in list_lives(stays, failures, 90)]
    assert told == [("p", Life(0, 10, False)), ("q", Life(10, 30, True))], "days on the shelf do not count"


def test_the_failure_at_an_exchange_belongs_to_the_part_that_goes() -> None:
    stays = [stay("old", 0, 10), stay("new", 10, 100)]
    failures = FailureTimes.collect([FailedPart(10, "a", "gpu0", "x")])
    told = {one.serial: life for one, life in list_lives(stays, failures, 90)}
    assert told == {"old": Life(0, 10, True), "new": Life(0, 80, False)}


def test_two_places_at_once_are_no_two_lives() -> None:
    stays = [stay("S", 0, 20), stay("S", 10, 30, node="b")]
    assert [life for _, life in list_lives(stays, FailureTimes({}), 90)] == [Life(0, 20, False), Life(20, 30, False)]


odd_stays = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from(["", "gpu0"]), st.sampled_from(["", "S", "<T>"]),
              st.integers(0, 9), st.sampled_from([1.0, 5.0, math.inf]))
    .map(lambda t: stay(t[2], t[3], t[3] + t[4] - 2, node=t[0], subject=t[1], position=t[2]))
)  # fmt: skip
odd_failures = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from("ab"), st.sampled_from(["", "gpu0"])).map(
        lambda t: FailedPart(float(t[0]), t[1], t[2], "x")
    )
)


@given(odd_stays, odd_failures)
def test_whatever_is_said_a_part_ages_once_and_fails_once(stays: list[PartStay], failures: list[FailedPart]) -> None:
    by_part: dict[str, list[Life]] = {}
    for one, life in list_lives(stays, FailureTimes.collect(failures), 10):
        by_part.setdefault(one.serial or f"{one.node}{one.subject}{one.since}", []).append(life)
    for lives in by_part.values():
        assert all(life.entered < life.left <= 10 for life in lives)
        assert all(life.left == after.entered and not life.failed for life, after in pairwise(lives))


@given(odd_stays, odd_failures)
@settings(max_examples=30)
def test_whatever_is_said_there_is_an_answer(stays: list[PartStay], failures: list[FailedPart]) -> None:
    failed = FailureTimes.collect(failures)
    found = measure_survival(stays, failed, 10, KNOWN_TRAITS)
    json.dumps([one.as_json() for one in found], allow_nan=False)
    assert "<T>" not in render_survival(found, moment(10))
    ranked = rank_positions(stays, failed, 10, RULES)
    assert all(math.isfinite(one.times) for one in ranked.by_group.values())


def test_a_rack_is_drawn_to_its_position_and_that_to_its_kind() -> None:
    stays = [
        stay(f"S{number}", 0, 1000, node=f"n{number}", rack=f"r{number % 10}", position=f"p{number % 2}")
        for number in range(200)
    ]
    failures = FailureTimes.collect(FailedPart(950, f"n{number}", "gpu0", "x") for number in range(0, 60, 2))
    found = rank_positions(stays, failures, 1000, RULES)
    usual = found.find(stay("", 0, 1, kind="never seen"))
    assert usual == 1.0
    here, other = found.find(stays[0]), found.find(stays[1])
    assert here > 1 > other
    assert (
        found.find(stay("", 0, 1, rack="r99", position="p0"))
        == found.by_group[next(group for group in found.by_group if group.position == "p0" and not group.rack)].times
    ), "of a rack that nobody knows, the position counts"


def test_failures_before_the_window_do_not_count() -> None:
    stays = [stay(f"S{number}", 0, 2000, node=f"n{number}") for number in range(30)]
    failures = FailureTimes.collect(FailedPart(100, f"n{number}", "gpu0", "x") for number in range(30))
    (one,) = [found for group, found in rank_positions(stays, failures, 1000, RULES).by_group.items() if not group.rack]
    assert (one.failures, one.days) == (0, 30 * 180)


@pytest.mark.parametrize(
    ("subject", "kind"), [("gpu12", "gpu"), ("mlx5_0", "mlx"), ("", "node"), ("nvme3n1", "nvme3n"), ("7", "7")]
)
def test_the_kind_of_a_subject(subject: str, kind: str) -> None:
    assert guess_kind(subject) == kind


@pytest.mark.parametrize(
    ("words", "said"),
    [(["parts", "--by", "colour"], "'colour' is no trait"), (["soak", "--failures", "x"], "there are no holders")],
)
def test_wrong_words_are_said(words: list[str], said: str) -> None:
    from typer.testing import CliRunner

    from assay.cli.verbs.evidence.trends import trends_app

    assert said in str(CliRunner().invoke(trends_app, words).exception)
