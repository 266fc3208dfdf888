"""A part that gets worse among its peers is named; what happens to healthy parts is no warning."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from statistics import median

import pytest
from trends.peers.planted_fleet import DAYS, NODES, START, PlantedFleet, name_nodes, node_name
from typer.testing import CliRunner

from assay.cli.verbs.evidence.trends import trends_app
from assay.model.errors import AssayError


@pytest.fixture
def fleet(tmp_path: Path) -> PlantedFleet:
    return PlantedFleet(tmp_path)


def drift(since: int, per_day: float):
    return lambda day: max(0, day - since) * per_day


def step(on: int, by: float):
    return lambda day: by if day >= on else 0.0


def test_a_part_that_gets_hotter_than_its_peers_is_named_with_its_reason(fleet: PlantedFleet) -> None:
    fleet.courses[3] = drift(90, 0.6)
    fleet.grow()
    fleet.hold_all()
    (warning,) = fleet.ask()["warnings"]
    assert (warning["node"], warning["subject"], warning["name"]) == (node_name(3), "gpu0", "gpu_temperature")
    assert warning["to"] - warning["from"] == pytest.approx(16, abs=2)
    assert warning["limit"] == 85
    assert "39 peers moved by" in warning["because"]
    assert "at this rate it reaches 85 in" in warning["because"]
    assert warning["days"] is None, "no range before warnings were closed"


def test_it_is_compared_with_its_own_days_before_the_last_three_weeks(fleet: PlantedFleet) -> None:
    fleet.courses[3] = drift(60, 0.3)
    fleet.grow()
    (warning,) = fleet.ask()["warnings"]
    values = [row[4] for row in fleet.rows if row[1] == node_name(3)]
    assert warning["from"] == pytest.approx(median(values[-60:-21]), abs=0.5)
    assert warning["to"] == pytest.approx(median(values[-7:]))


def test_a_healthy_fleet_has_no_warning(fleet: PlantedFleet) -> None:
    fleet.grow()
    answer = fleet.ask()
    assert answer["warnings"] == []
    assert answer["rules"][0]["series"] == NODES


def test_what_gets_better_is_no_warning(fleet: PlantedFleet) -> None:
    fleet.courses[3] = drift(90, -0.6)
    fleet.grow()
    assert fleet.ask()["warnings"] == []


def test_what_falls_towards_its_lower_limit_is_one(fleet: PlantedFleet) -> None:
    fleet.limits = (20.0, None)
    fleet.courses[3] = drift(90, -0.6)
    fleet.grow()
    assert name_nodes(fleet.ask()) == [node_name(3)]


def test_a_season_of_all_is_no_warning(fleet: PlantedFleet) -> None:
    fleet.courses = {number: drift(90, 0.6) for number in range(NODES)}
    fleet.grow()
    assert fleet.ask()["warnings"] == []


def test_what_comes_later_changes_nothing(fleet: PlantedFleet) -> None:
    fleet.courses[3] = drift(90, 0.6)
    fleet.courses[4] = drift(108, 9.0)
    fleet.grow()
    fleet.hold_all()
    seen = fleet.ask(day=107)
    fleet.rows = [row for row in fleet.rows if (row[0] - fleet.rows[0][0]).days <= 107]
    assert fleet.ask(day=107) == seen
    assert node_name(4) not in name_nodes(seen)


def test_what_comes_later_on_the_same_day_changes_nothing(fleet: PlantedFleet) -> None:
    fleet.courses[3] = drift(90, 0.6)
    fleet.grow()
    seen = fleet.ask(day=110)
    for number in range(NODES):
        fleet.say(number, 110.6, -1_000.0)
    assert fleet.ask(day=110) == seen


def test_a_part_is_named_on_the_second_day_on_which_its_change_is_seen(fleet: PlantedFleet) -> None:
    fleet.courses[3] = step(100, 12)
    fleet.grow()
    named = {day: name_nodes(fleet.ask(day=day)) for day in (102, 103, 104)}
    assert named == {102: [], 103: [], 104: [node_name(3)]}, "four of seven days, and then two days of three"


def test_a_part_with_gaps_in_a_season_is_no_warning(fleet: PlantedFleet) -> None:
    fleet.courses = {number: drift(0, 0.6) for number in range(NODES)}
    fleet.grow()
    start = fleet.rows[0][0]
    fleet.rows = [row for row in fleet.rows if row[1] != node_name(3) or not 78 <= (row[0] - start).days < 108]
    assert fleet.ask()["warnings"] == []


def test_fewer_than_twenty_peers_claim_nothing(fleet: PlantedFleet) -> None:
    fleet.courses[3] = drift(90, 0.6)
    fleet.grow()
    for number in range(NODES):
        fleet.hold(number, sku="h100" if number >= 20 else "a100" if number < 10 else "l40")
    answer = fleet.ask()
    assert answer["warnings"] == []
    assert answer["cannot_tell"] == 20
    assert answer["rules"][0]["series"] == 20


def test_a_rack_that_warms_is_one_group(fleet: PlantedFleet) -> None:
    fleet.courses = {number: drift(90, 0.6) for number in range(10, 16)}
    fleet.grow()
    fleet.hold_all()
    groups = {warning["group"] for warning in fleet.ask()["warnings"]}
    assert len(groups) == 1
    assert groups.pop().startswith("rack r1: 6 of 10 (p ")
    told = CliRunner().invoke(trends_app, fleet.write()).stdout
    assert told.count("Look there first") == 1


@pytest.mark.parametrize("trait", ["pdu", "switch", "batch", "driver"])
def test_what_a_file_of_holders_may_tell_too_is_a_group(fleet: PlantedFleet, trait: str) -> None:
    warming = range(0, 24, 4)
    fleet.courses = {number: drift(90, 0.6) for number in warming}
    fleet.grow()
    for number in range(NODES):
        fleet.hold(number, **{trait: "x" if number in warming or number == 1 else f"y{number % 3}"})
    answer = fleet.ask()
    assert [(one["trait"], one["value"], one["named"], one["members"]) for one in answer["groups"]] == [
        (trait, "x", 6, 7)
    ]
    assert {one["group"] for one in answer["warnings"]} == {f"{trait} x: 6 of 7 (p {answer['groups'][0]['p']:.2g})"}


def test_an_end_that_is_still_to_come_is_not_known_yet(fleet: PlantedFleet) -> None:
    fleet.courses[3] = drift(90, 0.6)
    fleet.grow()
    fleet.hold_all()
    seen = fleet.ask(day=110)
    for holder in fleet.holders:
        holder["until"] = holder["until"] or START + timedelta(days=110, hours=14)
    assert fleet.ask(day=110) == seen


class TestWhatIsNoTrend:
    """Each of these moves a healthy series. None is a warning, on many a day after it."""

    def check(self, fleet: PlantedFleet) -> None:
        for day in (*range(88, 106, 8), DAYS - 1):
            assert name_nodes(fleet.ask(day=day)) == [], f"day {day}"

    def test_new_firmware_on_a_wave(self, fleet: PlantedFleet) -> None:
        wave = range(20, NODES + 5)
        fleet.nodes = NODES + 5
        fleet.courses = {number: step(86, 6) for number in wave}
        fleet.grow()
        for number in range(fleet.nodes):
            fleet.hold(number, until=86 if number in wave else None)
            if number in wave:
                fleet.hold(number, since=86, firmware="2.0")
        self.check(fleet)

    def test_a_repair_with_a_new_level(self, fleet: PlantedFleet) -> None:
        fleet.courses[3] = step(86, 9)
        fleet.grow()
        fleet.hold_all(but=[3])
        fleet.hold(3, until=86)
        fleet.hold(3, since=86)
        self.check(fleet)
        fleet.holders.clear()
        assert name_nodes(fleet.ask(day=105)) == [node_name(3)], "nobody who does not know of the repair can tell"

    def test_another_part_and_the_first_one_coming_back(self, fleet: PlantedFleet) -> None:
        fleet.courses[3] = lambda day: 9.0 if 70 <= day < 90 else 0.0
        fleet.grow()
        fleet.hold_all(but=[3])
        fleet.hold(3, until=70)
        fleet.hold(3, since=70, until=90, serial="S900")
        fleet.hold(3, since=90)
        self.check(fleet)

    def test_another_rack(self, fleet: PlantedFleet) -> None:
        fleet.courses[3] = step(86, 9)
        fleet.grow()
        fleet.hold_all(but=[3])
        fleet.hold(3, until=86)
        fleet.hold(3, since=86, rack="r9")
        self.check(fleet)

    def test_wild_readings_and_lost_days(self, fleet: PlantedFleet) -> None:
        fleet.grow()
        fleet.rows = [row for row in fleet.rows if (row[0] - fleet.rows[0][0]).days not in (84, 85)]
        for number in range(0, NODES, 3):
            for day in (87, 95, 103):
                fleet.say(number, day, 4_000.0)
        self.check(fleet)

    def test_a_node_that_was_away(self, fleet: PlantedFleet) -> None:
        fleet.grow()
        gone = {node_name(3)}
        fleet.rows = [
            row for row in fleet.rows if row[1] not in gone or not 60 <= (row[0] - fleet.rows[0][0]).days < 100
        ]
        self.check(fleet)

    def test_another_unit(self, fleet: PlantedFleet) -> None:
        fleet.grow()
        changed = [row for row in fleet.rows if row[1] == node_name(3) and (row[0] - fleet.rows[0][0]).days >= 86]
        fleet.rows = [row for row in fleet.rows if row not in changed]
        fleet.rows += [(*row[:4], row[4] * 1.8 + 32, "F", *row[6:]) for row in changed]
        self.check(fleet)

    def test_another_name(self, fleet: PlantedFleet) -> None:
        fleet.grow()
        start = fleet.rows[0][0]
        fleet.rows = [
            (*row[:3], "gpu_core_temperature", row[4] + 9, *row[5:]) if (row[0] - start).days >= 86 else row
            for row in fleet.rows
        ]
        self.check(fleet)

    def test_another_limit(self, fleet: PlantedFleet) -> None:
        fleet.grow()
        start = fleet.rows[0][0]
        fleet.rows = [(*row[:7], 61.0) if (row[0] - start).days >= 86 else row for row in fleet.rows]
        self.check(fleet)

    def test_a_clock_of_1970_and_one_that_is_ahead(self, fleet: PlantedFleet) -> None:
        fleet.grow()
        for number in (3, 4):
            fleet.say(number, -20_000, 90.0)
            fleet.say(number, 4_000, 190.0)
        self.check(fleet)

    def test_a_clock_that_is_an_hour_and_a_clock_that_is_a_day_ahead(self, fleet: PlantedFleet) -> None:
        fleet.grow()
        skewed = {node_name(3): timedelta(hours=1), node_name(4): timedelta(days=1)}
        fleet.rows = [(row[0] + skewed.get(row[1], timedelta()), *row[1:]) for row in fleet.rows]
        self.check(fleet)

    def test_a_clock_that_is_put_right(self, fleet: PlantedFleet) -> None:
        fleet.grow()
        start = fleet.rows[0][0]
        fleet.rows = [
            (row[0] - timedelta(days=2), *row[1:]) if row[1] == node_name(3) and (row[0] - start).days < 90 else row
            for row in fleet.rows
        ]
        self.check(fleet)

    def test_a_part_that_comes_back_to_another_node(self, fleet: PlantedFleet) -> None:
        fleet.courses = {3: step(80, 8), 4: lambda day: 8.0 if 80 <= day < 92 else 0.0}
        fleet.grow()
        fleet.hold_all(but=[3, 4])
        fleet.hold(3, until=80, serial="S3")
        fleet.hold(3, since=80, serial="S4")
        fleet.hold(4, until=80, serial="S4")
        fleet.hold(4, since=80, until=92, serial="S3")
        fleet.hold(4, since=92, serial="S900")
        self.check(fleet)

    def test_another_spec_with_another_unit_and_limit(self, fleet: PlantedFleet) -> None:
        fleet.grow()
        start = fleet.rows[0][0]
        fleet.rows = [
            (*row[:4], row[4] + 273.15, "K", None, 340.0) if (row[0] - start).days >= 86 else row for row in fleet.rows
        ]
        self.check(fleet)

    def test_a_limit_that_changes_sides(self, fleet: PlantedFleet) -> None:
        fleet.grow()
        start = fleet.rows[0][0]
        fleet.rows = [(*row[:6], 20.0, None) if (row[0] - start).days >= 86 else row for row in fleet.rows]
        self.check(fleet)

    def test_values_that_never_change(self, fleet: PlantedFleet) -> None:
        for number in range(NODES):
            for day in range(DAYS):
                fleet.say(number, day, 8.0)
        self.check(fleet)


def test_one_counter_that_begins_to_count_where_all_others_rest_is_named(fleet: PlantedFleet) -> None:
    for number in range(NODES):
        for day in range(DAYS):
            fleet.say(number, day, float(max(0, day - 100)) if number == 3 else 0.0)
    assert name_nodes(fleet.ask()) == [node_name(3)]


@pytest.mark.parametrize("content", [b"no parquet", b"", None])
def test_a_file_that_is_none_is_said(fleet: PlantedFleet, content: bytes | None) -> None:
    fleet.grow()
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

    fleet.grow()
    words = fleet.write()
    path = words[words.index("--measurements") + 1]
    database = duckdb.connect()
    database.execute(f"CREATE TABLE t AS FROM '{path}'")
    database.execute(change)
    database.execute(f"COPY t TO '{path}'")
    assert said in str(CliRunner().invoke(trends_app, words).exception)


def test_a_moment_that_is_none_is_said(fleet: PlantedFleet) -> None:
    fleet.grow()
    words = [*fleet.write(), "--as-of", "yesterday"]
    assert "'yesterday' is no time" in str(CliRunner().invoke(trends_app, words).exception)


def test_an_empty_file_has_no_warning(fleet: PlantedFleet) -> None:
    fleet.say(0, 500, 1.0)
    assert fleet.ask() == {
        "warnings": [],
        "groups": [],
        "cannot_tell": 0,
        "rules": fleet.ask()["rules"],
        "probation": [],
        "positions": [],
        "records": [],
    }


@pytest.mark.parametrize("wave_day", [70, 85, 100])
def test_new_firmware_on_a_wave_hides_no_drift(fleet: PlantedFleet, wave_day: int) -> None:
    fleet.courses = {number: step(wave_day, 6) for number in range(20, 50)}
    fleet.courses[30] = lambda day: step(wave_day, 6)(day) + drift(95, 0.5)(day)
    fleet.nodes = 50
    fleet.grow()
    for number in range(50):
        fleet.hold(number, until=wave_day if number >= 20 else None)
        if number >= 20:
            fleet.hold(number, since=wave_day, firmware="2.0")
    assert name_nodes(fleet.ask()) == [node_name(30)]


def test_a_wild_half_of_the_recent_days_is_no_warning(fleet: PlantedFleet) -> None:
    fleet.grow()
    gone = {(node_name(3), DAYS - 2), (node_name(3), DAYS - 4), (node_name(3), DAYS - 6)}
    wild = {(node_name(3), DAYS - 1), (node_name(3), DAYS - 3)}
    start = fleet.rows[0][0]
    kept = [row for row in fleet.rows if (row[1], (row[0] - start).days) not in gone]
    fleet.rows = [(*row[:4], 200.0, *row[5:]) if (row[1], (row[0] - start).days) in wild else row for row in kept]
    assert fleet.ask()["warnings"] == []
