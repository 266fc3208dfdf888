"""A part that gets worse among its peers is named; what happens to healthy parts is no warning."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import pytest
from typer.testing import CliRunner

from assay.cli.app import load_verb
from assay.model.errors import AssayError
from tests.decide.trends.planted_fleet import DAYS, NODES, START, PlantedFleet, ask_files, name_nodes, node_name

trends_app = load_verb("trends")


@pytest.fixture
def fleet(tmp_path: Path) -> PlantedFleet:
    return PlantedFleet(tmp_path)


Scene = Callable[[PlantedFleet], None]
"""Plants what happens to some parts of a fleet."""


def day_of(row: tuple[Any, ...]) -> int:
    """Return on which day of the world a row was measured."""
    return int((row[0] - START).days)


def drift(since: int, per_day: float):
    return lambda day: max(0, day - since) * per_day


def step(on: int, by: float):
    return lambda day: by if day >= on else 0.0


def test_what_comes_later_changes_nothing(fleet: PlantedFleet) -> None:
    fleet.courses[3] = drift(90, 0.6)
    fleet.courses[4] = drift(108, 9.0)
    fleet.grow()
    fleet.hold_all()
    seen = fleet.ask(day=107)
    fleet.rows = [row for row in fleet.rows if (row[0] - fleet.rows[0][0]).days <= 107]
    assert fleet.ask(day=107) == seen
    assert node_name(4) not in name_nodes(seen)


@pytest.mark.slow
def test_what_comes_later_on_the_same_day_changes_nothing(fleet: PlantedFleet) -> None:
    fleet.courses[3] = drift(90, 0.6)
    fleet.grow()
    seen = fleet.ask(day=110)
    for number in range(NODES):
        fleet.say(number, 110.6, -1_000.0)
    assert fleet.ask(day=110) == seen


@pytest.mark.slow
def test_what_a_file_of_holders_may_tell_too_is_a_group(fleet: PlantedFleet) -> None:
    traits, warming = ("pdu", "switch", "batch", "driver"), range(0, 24, 4)
    for trait in traits:
        alone = PlantedFleet(fleet.folder, subject=f"of_{trait}", name=f"of_{trait}")
        alone.courses = {number: drift(90, 0.6) for number in warming}
        alone.grow()
        for number in range(NODES):
            shares = "x" if number in warming or number == 1 else f"y{number % 3}"
            alone.hold(number, **(dict.fromkeys(traits, "") | {trait: shares}))
        fleet.rows, fleet.holders = fleet.rows + alone.rows, fleet.holders + alone.holders
    answer = fleet.ask()
    for trait in traits:
        (group,) = (one for one in answer["groups"] if one["trait"] == trait)
        assert (group["name"], group["value"], group["named"], group["members"]) == (f"of_{trait}", "x", 6, 7)
        told = {one["group"] for one in answer["warnings"] if one["name"] == f"of_{trait}"}
        assert told == {f"{trait} x: 6 of 7 (p {group['p']:.2g})"}
    assert len(answer["groups"]) == len(traits)


@pytest.mark.slow
def test_an_end_that_is_still_to_come_is_not_known_yet(fleet: PlantedFleet) -> None:
    fleet.courses[3] = drift(90, 0.6)
    fleet.grow()
    fleet.hold_all()
    seen = fleet.ask(day=110)
    for holder in fleet.holders:
        holder["until"] = holder["until"] or START + timedelta(days=110, hours=14)
    assert fleet.ask(day=110) == seen


def a_part_with_gaps_in_a_season(fleet: PlantedFleet) -> None:
    fleet.courses = {number: drift(0, 0.7) for number in range(NODES)}
    fleet.grow()
    fleet.rows = [row for row in fleet.rows if row[1] != node_name(3) or not 78 <= day_of(row) < 108]


def a_drift_with_fewer_than_twenty_peers(fleet: PlantedFleet) -> None:
    fleet.courses[3] = drift(90, 0.6)
    fleet.grow()
    for number in range(NODES):
        fleet.hold(number, sku="h100" if number >= 20 else "a100" if number < 10 else "l40")


def new_firmware_on_a_wave(fleet: PlantedFleet) -> None:
    wave = range(20, NODES + 5)
    fleet.nodes = NODES + 5
    fleet.courses = {number: step(86, 6) for number in wave}
    fleet.grow()
    for number in range(fleet.nodes):
        fleet.hold(number, until=86 if number in wave else None)
        if number in wave:
            fleet.hold(number, since=86, firmware="2.0")


def a_repair_with_a_new_level(fleet: PlantedFleet) -> None:
    fleet.courses[3] = step(86, 9)
    fleet.grow()
    fleet.hold_all(but=[3])
    fleet.hold(3, until=86)
    fleet.hold(3, since=86)


def another_part_and_the_first_one_coming_back(fleet: PlantedFleet) -> None:
    fleet.courses[3] = lambda day: 9.0 if 70 <= day < 90 else 0.0
    fleet.grow()
    fleet.hold_all(but=[3])
    fleet.hold(3, until=70)
    fleet.hold(3, since=70, until=90, serial="S900")
    fleet.hold(3, since=90)


def another_rack(fleet: PlantedFleet) -> None:
    fleet.courses[3] = step(86, 9)
    fleet.grow()
    fleet.hold_all(but=[3])
    fleet.hold(3, until=86)
    fleet.hold(3, since=86, rack="r9")


def wild_readings_and_lost_days(fleet: PlantedFleet) -> None:
    fleet.grow()
    fleet.rows = [row for row in fleet.rows if day_of(row) not in (84, 85)]
    for number in range(0, NODES, 3):
        for day in (87, 95, 103):
            fleet.say(number, day, 4_000.0)


def a_node_that_was_away(fleet: PlantedFleet) -> None:
    fleet.grow()
    fleet.rows = [row for row in fleet.rows if row[1] != node_name(3) or not 60 <= day_of(row) < 100]


def another_unit(fleet: PlantedFleet) -> None:
    fleet.grow()
    fleet.rows = [
        (*row[:4], row[4] * 1.8 + 32, "F", *row[6:]) if row[1] == node_name(3) and day_of(row) >= 86 else row
        for row in fleet.rows
    ]


def another_name(fleet: PlantedFleet) -> None:
    fleet.grow()
    fleet.rows = [
        (*row[:3], f"{row[3]}_core", row[4] + 9, *row[5:]) if day_of(row) >= 86 else row for row in fleet.rows
    ]


def another_limit(fleet: PlantedFleet) -> None:
    fleet.grow()
    fleet.rows = [(*row[:7], 61.0) if day_of(row) >= 86 else row for row in fleet.rows]


def a_clock_of_1970_and_one_that_is_ahead(fleet: PlantedFleet) -> None:
    fleet.grow()
    for number in (3, 4):
        fleet.say(number, -20_000, 90.0)
        fleet.say(number, 4_000, 190.0)


def a_clock_that_is_an_hour_and_a_clock_that_is_a_day_ahead(fleet: PlantedFleet) -> None:
    fleet.grow()
    skewed = {node_name(3): timedelta(hours=1), node_name(4): timedelta(days=1)}
    fleet.rows = [(row[0] + skewed.get(row[1], timedelta()), *row[1:]) for row in fleet.rows]


def a_clock_that_is_put_right(fleet: PlantedFleet) -> None:
    fleet.grow()
    fleet.rows = [
        (row[0] - timedelta(days=2), *row[1:]) if row[1] == node_name(3) and day_of(row) < 90 else row
        for row in fleet.rows
    ]


def a_part_that_comes_back_to_another_node(fleet: PlantedFleet) -> None:
    fleet.courses = {3: step(80, 8), 4: lambda day: 8.0 if 80 <= day < 92 else 0.0}
    fleet.grow()
    fleet.hold_all(but=[3, 4])
    fleet.hold(3, until=80, serial="S3")
    fleet.hold(3, since=80, serial="S4")
    fleet.hold(4, until=80, serial="S4")
    fleet.hold(4, since=80, until=92, serial="S3")
    fleet.hold(4, since=92, serial="S900")


def another_spec_with_another_unit_and_limit(fleet: PlantedFleet) -> None:
    fleet.grow()
    fleet.rows = [(*row[:4], row[4] + 273.15, "K", None, 340.0) if day_of(row) >= 86 else row for row in fleet.rows]


def a_limit_that_changes_sides(fleet: PlantedFleet) -> None:
    fleet.grow()
    fleet.rows = [(*row[:6], 20.0, None) if day_of(row) >= 86 else row for row in fleet.rows]


def values_that_never_change(fleet: PlantedFleet) -> None:
    for number in range(NODES):
        for day in range(DAYS):
            fleet.say(number, day, 8.0)


def a_healthy_fleet(fleet: PlantedFleet) -> None:
    fleet.grow()


def what_gets_better(fleet: PlantedFleet) -> None:
    fleet.courses[3] = drift(90, -0.6)
    fleet.grow()


def a_season_of_all(fleet: PlantedFleet) -> None:
    fleet.courses = {number: drift(90, 0.6) for number in range(NODES)}
    fleet.grow()


def a_wild_half_of_the_recent_days(fleet: PlantedFleet) -> None:
    fleet.grow()
    gone, wild = {DAYS - 2, DAYS - 4, DAYS - 6}, {DAYS - 1, DAYS - 3}
    others = [row for row in fleet.rows if row[1] != node_name(3) or day_of(row) not in gone]
    fleet.rows = [
        (*row[:4], 200.0, *row[5:]) if row[1] == node_name(3) and day_of(row) in wild else row for row in others
    ]


NO_TREND = (
    new_firmware_on_a_wave, a_repair_with_a_new_level, another_part_and_the_first_one_coming_back, another_rack,
    wild_readings_and_lost_days, a_node_that_was_away, another_unit, another_name, another_limit,
    a_clock_of_1970_and_one_that_is_ahead, a_clock_that_is_an_hour_and_a_clock_that_is_a_day_ahead,
    a_clock_that_is_put_right, a_part_that_comes_back_to_another_node, another_spec_with_another_unit_and_limit,
    a_limit_that_changes_sides, values_that_never_change, a_healthy_fleet, what_gets_better, a_season_of_all,
    a_wild_half_of_the_recent_days, a_part_with_gaps_in_a_season, a_drift_with_fewer_than_twenty_peers,
)  # fmt: skip
"""Each of these moves a series, or looks like it. None is a warning, on many a day after it."""


def what_gets_hotter(fleet: PlantedFleet) -> None:
    fleet.courses[3] = drift(90, 0.6)
    fleet.grow()
    fleet.hold_all()


def a_slow_drift(fleet: PlantedFleet) -> None:
    fleet.courses[3] = drift(60, 0.3)
    fleet.grow()


def a_rack_that_warms(fleet: PlantedFleet) -> None:
    fleet.courses = {number: drift(90, 0.6) for number in range(10, 16)}
    fleet.grow()
    fleet.hold_all()


def two_steps_of_which_one_is_a_day_later(fleet: PlantedFleet) -> None:
    fleet.courses = {3: step(100, 12), 4: step(101, 12)}
    fleet.grow()


def what_falls_towards_its_lower_limit(fleet: PlantedFleet) -> None:
    fleet.limits = (20.0, None)
    fleet.courses[3] = drift(90, -0.6)
    fleet.grow()


def a_repair_that_nobody_knows_of(fleet: PlantedFleet) -> None:
    fleet.courses[3] = step(110, 9)
    fleet.grow()


def one_counter_that_begins_to_count_where_all_others_rest(fleet: PlantedFleet) -> None:
    for number in range(NODES):
        for day in range(DAYS):
            fleet.say(number, day, float(max(0, day - 100)) if number == 3 else 0.0)


def a_drift_after_new_firmware(fleet: PlantedFleet, wave_day: int) -> None:
    fleet.nodes = NODES + 10
    wave = range(20, fleet.nodes)
    fleet.courses = {number: step(wave_day, 6) for number in wave}
    fleet.courses[3] = drift(95, 0.5)
    fleet.courses[30] = lambda day: step(wave_day, 6)(day) + drift(95, 0.5)(day)
    fleet.grow()
    for number in range(fleet.nodes):
        fleet.hold(number, until=wave_day if number in wave else None)
        if number in wave:
            fleet.hold(number, since=wave_day, firmware="2.0")


NAMED: dict[Scene, list[int]] = {
    what_gets_hotter: [3],
    a_slow_drift: [3],
    a_rack_that_warms: [*range(10, 16)],
    two_steps_of_which_one_is_a_day_later: [3, 4],
    what_falls_towards_its_lower_limit: [3],
    a_repair_that_nobody_knows_of: [3],
    one_counter_that_begins_to_count_where_all_others_rest: [3],
    **{partial(a_drift_after_new_firmware, wave_day=day): [3, 30] for day in (70, 85, 100)},
}
"""Each of these is a warning of these nodes."""


def name_scene(scene: Scene) -> str:
    if isinstance(scene, partial):
        return f"{scene.func.__name__}_of_day_{scene.keywords['wave_day']}"
    return scene.__name__


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> PlantedFleet:
    """One fleet in which each scene has parts and a measurement of its own."""
    together = PlantedFleet(tmp_path_factory.mktemp("scenes"))
    for scene in (*NO_TREND, *NAMED):
        alone = PlantedFleet(together.folder, subject=name_scene(scene), name=name_scene(scene))
        scene(alone)
        together.rows += alone.rows
        together.holders += alone.holders
    return together


@pytest.fixture(scope="module")
def answers(scenes: PlantedFleet) -> dict[int, dict[str, Any]]:
    """What is said of them on some days."""
    files = scenes.write()
    return {day: ask_files(files, day) for day in (96, 104, DAYS - 1)}


def list_named(answer: Mapping[str, Any], scene: Scene, name: str = "") -> list[str]:
    named = name or name_scene(scene)
    return sorted(
        one["node"] for one in answer["warnings"] if one["subject"] == name_scene(scene) and one["name"] == named
    )


@pytest.mark.parametrize("scene", NO_TREND, ids=name_scene)
def test_what_happens_to_healthy_parts_is_no_warning(answers: dict[int, dict[str, Any]], scene: Scene) -> None:
    for day, answer in answers.items():
        assert list_named(answer, scene) == [], f"day {day}"


@pytest.mark.parametrize("scene", NAMED, ids=name_scene)
def test_what_gets_worse_is_named(answers: dict[int, dict[str, Any]], scene: Scene) -> None:
    assert list_named(answers[DAYS - 1], scene) == [node_name(number) for number in NAMED[scene]]


def list_warnings(answer: Mapping[str, Any], scene: Scene) -> list[dict[str, Any]]:
    return [one for one in answer["warnings"] if one["subject"] == name_scene(scene)]


def test_a_part_that_gets_hotter_than_its_peers_is_named_with_its_reason(answers: dict[int, dict[str, Any]]) -> None:
    (warning,) = list_warnings(answers[DAYS - 1], what_gets_hotter)
    assert (warning["node"], warning["name"], warning["limit"]) == (node_name(3), name_scene(what_gets_hotter), 85)
    assert warning["to"] - warning["from"] == pytest.approx(16, abs=2)
    assert "39 peers moved by" in warning["because"]
    assert "at this rate it reaches 85 in" in warning["because"]
    assert warning["days"] is None, "no range before warnings were closed"


def test_it_is_compared_with_its_own_days_before_the_last_three_weeks(
    scenes: PlantedFleet, answers: dict[int, dict[str, Any]]
) -> None:
    (warning,) = list_warnings(answers[DAYS - 1], a_slow_drift)
    values = [row[4] for row in scenes.rows if row[1:3] == (node_name(3), name_scene(a_slow_drift))]
    assert warning["from"] == pytest.approx(median(values[-60:-21]), abs=0.5)
    assert warning["to"] == pytest.approx(median(values[-7:]))


def test_a_part_is_named_on_the_fourth_day_on_which_its_change_is_seen(scenes: PlantedFleet) -> None:
    answer = ask_files(scenes.write(), 103)
    assert list_named(answer, two_steps_of_which_one_is_a_day_later) == [node_name(3)], "four of seven days"


def test_a_part_that_falls_silent_while_others_of_its_node_speak_is_named(answers: dict[int, dict[str, Any]]) -> None:
    lost = {day: list_named(answer, a_node_that_was_away, "readings") for day, answer in answers.items()}
    assert lost == {96: [node_name(3)], 104: [], DAYS - 1: []}, "away on the days 60 to 100"
    (warning,) = (one for one in list_warnings(answers[96], a_node_that_was_away))
    assert (warning["from"], warning["to"]) == (1, 0)


def test_fewer_than_twenty_peers_claim_nothing(answers: dict[int, dict[str, Any]]) -> None:
    answer = answers[DAYS - 1]
    assert answer["few_peers"] == 20, "two small groups"


def test_what_drops_out_is_counted(answers: dict[int, dict[str, Any]]) -> None:
    answer = answers[DAYS - 1]
    assert answer["silent"] == 2 * NODES + 2, "another name and another unit for all, one part's unit, a wild half"
    assert answer["cannot_tell"] == answer["few_peers"] + answer["silent"] + answer["too_new"]
    assert answer["parts"] == len({(one["node"], one["subject"]) for one in answer["warnings"]})


def test_a_rack_that_warms_is_one_group(answers: dict[int, dict[str, Any]]) -> None:
    (group,) = {one["group"] for one in list_warnings(answers[DAYS - 1], a_rack_that_warms)}
    assert group.startswith("rack r1: 6 of 10 (p ")


@pytest.mark.slow
def test_a_group_is_one_line(fleet: PlantedFleet) -> None:
    a_rack_that_warms(fleet)
    assert CliRunner().invoke(trends_app, fleet.write()).stdout.count("Look there first") == 1


def test_so_many_scenes_in_one_fleet_leave_the_threshold_low(answers: dict[int, dict[str, Any]]) -> None:
    assert all(answer["rules"][0]["threshold"] <= 5 for answer in answers.values())


@pytest.mark.parametrize("content", [b"no parquet", b"", None])
def test_a_file_that_is_none_is_said(fleet: PlantedFleet, content: bytes | None) -> None:
    fleet.say(0, 0, 60.0)
    words = fleet.write()
    path = Path(words[words.index("--measurements") + 1])
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    answer = CliRunner().invoke(trends_app, words)
    assert isinstance(answer.exception, AssayError)
    assert answer.exception.where == str(path)
    assert "\n" not in answer.exception.what


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("ALTER TABLE t DROP unit", "the column unit is missing"),
        ("ALTER TABLE t ALTER value TYPE VARCHAR", "the column value is VARCHAR, and not DOUBLE"),
        ("ALTER TABLE t ALTER time TYPE VARCHAR", "the column time is VARCHAR, and not TIMESTAMP"),
    ],
)
def test_a_wrong_column_is_said(fleet: PlantedFleet, change: str, said: str) -> None:
    import duckdb

    fleet.say(0, 0, 60.0)
    words = fleet.write()
    path = words[words.index("--measurements") + 1]
    database = duckdb.connect()
    database.execute(f"CREATE TABLE t AS FROM '{path}'")
    database.execute(change)
    database.execute(f"COPY t TO '{path}'")
    assert said in str(CliRunner().invoke(trends_app, words).exception)


def test_a_moment_that_is_none_is_said(fleet: PlantedFleet) -> None:
    fleet.say(0, 0, 60.0)
    words = [*fleet.write(), "--as-of", "yesterday"]
    assert "'yesterday' is no time" in str(CliRunner().invoke(trends_app, words).exception)


@pytest.mark.parametrize(
    ("days", "day", "said"),
    [
        (20, None, "[1-9][0-9]* are too new"),
        (3, None, "0 were silent in the last days, [1-9][0-9]* are too new"),
        (20, 200, "[1-9][0-9]* were silent"),
        (20, -500, "no measurements before"),
        (20, 900, "none of 274 days"),
    ],
)
def test_where_nothing_could_be_compared_is_no_all_clear(
    fleet: PlantedFleet, days: int, day: float | None, said: str
) -> None:
    fleet.days = days
    fleet.grow()
    answer = CliRunner().invoke(trends_app, fleet.write(day=day))
    assert isinstance(answer.exception, AssayError), "exit code 2"
    assert re.search(said, str(answer.exception))


def test_the_answer_says_how_old_the_newest_value_is(fleet: PlantedFleet) -> None:
    fleet.grow()
    assert fleet.ask(day=fleet.days + 1)["newest_age_days"] == pytest.approx(1.75)


def test_a_heavy_tailed_counter_takes_nothing_from_a_temperature(fleet: PlantedFleet) -> None:
    fleet.courses[3] = drift(90, 0.6)
    fleet.grow()
    chance = Random(5)
    for number in range(NODES):
        errors = 0
        for day in range(DAYS):
            errors += int(chance.paretovariate(0.7)) if number % 10 == 5 and day // 9 % 3 == 0 else 0
            fleet.say(number, day, float(errors), name="ecc_errors", unit="count")
    named = [(one["node"], one["name"]) for one in fleet.ask(day=108)["warnings"]]
    assert [node for node, name in named if name == fleet.name] == [node_name(3)]
    assert len(named) <= 2
