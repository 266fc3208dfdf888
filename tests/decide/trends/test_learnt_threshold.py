"""The evidence above which a part is named follows from healthy parts in past weeks, and from a budget of alarms."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from assay.decide.trends.change_warnings import SeriesCount
from assay.decide.trends.days import DAY_S, list_walked_days, list_weeks
from assay.decide.trends.fleet_tables import make_intervals
from assay.decide.trends.measured_days import Parts, read_measured
from assay.decide.trends.measurement_tables import TrendFiles, open_tables
from assay.decide.trends.part_findings import NEVER, DayEvidence, PartFindings, PartSearch
from assay.decide.trends.trend_answer import TrendAnswer
from assay.decide.trends.warning_record import ClosedWarning, FailuresSeen, judge_record
from assay.model.specs.trend_rules import ChangeDetector
from tests.decide.trends.planted_fleet import START, PlantedFleet

WEEKS = 12


def learn(
    *scores: float,
    weeks: int = WEEKS,
    nodes: int = 1000,
    racks: tuple[str, ...] = (),
    failed: int = 0,
    standing: int = 0,
    today: int = 0,
    budget: float = 0.1,
) -> tuple[float, bool]:
    """Return the threshold by the highest score that each part of 1,000 had in the last four weeks.

    `failed`: so many of the first ones failed; `standing`: so many of the first ones are still as high.
    """
    grid = np.zeros((nodes, 1), np.int16)
    parts = Parts([("n1", "")] * nodes, np.arange(nodes, dtype=np.int32), np.ones(nodes, bool), grid, grid, nodes)
    before = [-7 * week for week in range(1, weeks + 1)]
    search = DayEvidence(parts, today, before, ChangeDetector(alarms_per_1000_node_days=budget), {})
    past, failed_on = np.zeros((weeks, nodes)), np.where(np.arange(nodes) < failed, -20, NEVER)
    past[:1, : len(scores)] = scores
    is_false = search.find_false(failed_on, np.arange(nodes) < standing)
    return search._learn(past * is_false, racks or ("",) * nodes, nodes)


def test_the_budget_says_how_many_alarms_there_may_be() -> None:
    falling = tuple(10 - number / 4 for number in range(20))
    assert learn(*falling) == (pytest.approx(falling[8] + np.log10(9 / 8.4)), True), "0.1 a day in 84 days are 8"
    assert learn(*falling, budget=0.2)[0] == pytest.approx(falling[16] + np.log10(17 / 16.8))


def test_where_the_budget_is_less_than_one_alarm_the_fifth_tells_how_often_they_come() -> None:
    assert learn(9, 8, 7, 6, 5, 4.5, nodes=40)[0] == pytest.approx(5 + np.log10(5 / (0.1 * 0.04 * 84)))


def test_it_is_never_so_low_that_a_usual_tail_would_cost_the_budget() -> None:
    assert learn(*[3.0] * 20) == (4.3, True)


def test_a_short_history_teaches_nothing() -> None:
    assert learn(*[9.0] * 20, weeks=2) == (4.3, False)


def test_only_healthy_parts_teach_it_and_a_rack_that_moves_as_a_whole_is_one_alarm() -> None:
    scores = tuple(10 - number / 4 for number in range(20))
    assert learn(*scores, failed=3)[0] == pytest.approx(scores[11] + np.log10(9 / 8.4))
    racks = ("r1",) * 5 + tuple(f"q{number}" for number in range(995))
    assert learn(*scores, racks=racks)[0] == pytest.approx(scores[12] + np.log10(9 / 8.4))


def test_what_stands_today_teaches_nothing_until_its_thirty_days_are_over() -> None:
    scores = tuple(10 - number / 4 for number in range(20))
    assert learn(*scores, standing=3)[0] == pytest.approx(scores[11] + np.log10(9 / 8.4)), "they may fail yet"
    late = learn(*scores, standing=3, today=24)[0]
    assert late == pytest.approx(scores[8] + np.log10(9 / 8.4)), "nothing followed: these were false alarms"


@pytest.mark.parametrize(
    ("false_rate", "is_learned", "told"),
    [
        (0.15, True, "0.15 false alarms per 1,000 nodes and day: the budget of 0.1 cannot be kept here"),
        (0.05, True, "0.05 false alarms per 1,000 nodes and day, within the budget of 0.1"),
        (0.05, False, "The past is too short to tell how often this is right"),
        (None, True, "The past is too short to tell how often this is right"),
    ],
)
def test_each_answer_says_how_good_its_past_was_and_whether_the_budget_is_kept(
    false_rate: float | None, is_learned: bool, told: str
) -> None:
    outcomes = ("right", "right", "right", "wrong")
    record = judge_record([ClosedWarning(9.0, outcome) for outcome in outcomes], FailuresSeen(0, 0, 4, 3))
    answer = TrendAnswer(SeriesCount(9), 4.3, is_learned, [], [], record, false_rate, 0.0, ChangeDetector())
    because = answer.make_rule().because
    assert told in because
    assert (
        "4 warnings ended, 3 right (precision 0.75" in because and "75% of the failures were foreseen" in because
    ) == (is_learned and false_rate is not None)


def search_as_of(files: TrendFiles, day: int) -> tuple[PartFindings, list[int]]:
    """Return what is found as of a day since 1970, and the past days that were asked."""
    as_of = datetime.fromtimestamp((day + 0.5) * DAY_S, UTC)
    with open_tables(files, as_of) as database:
        make_intervals(database)
        weeks = list_weeks(day, int(START.timestamp() // DAY_S))
        return PartSearch(day, weeks, ChangeDetector(), False, {}).find(database), weeks


def test_its_own_past_is_what_it_named_then_by_what_was_known_then(tmp_path: Path) -> None:
    fleet = PlantedFleet(tmp_path, days=210, limits=(None, None))
    fleet.courses = {number: lambda day, n=number: 12.0 * (110 + 6 * n <= day < 130 + 6 * n) for number in range(8)}
    fleet.grow()
    fleet.write()
    files, today = TrendFiles(tmp_path / "measurements.parquet"), int(START.timestamp() // DAY_S) + 209
    now, weeks = search_as_of(files, today)
    asked = list_walked_days(weeks)
    assert len(asked) == 7
    for day in asked[:-2]:
        then, _ = search_as_of(files, day)
        named = {(score.node, score.subject) for score in then.scores}
        assert {walked.part for walked in now.walked if walked.day == day} == named
    assert {walked.part for walked in now.walked}, "some were named"


def test_a_day_knows_no_failure_after_it() -> None:
    part = ("n1", "gpu0")
    grid = np.zeros((1, 1), np.int16)
    parts = Parts([part], np.zeros(1, np.int32), np.ones(1, bool), grid, grid, 1)
    evidence = DayEvidence(parts, 100, [], ChangeDetector(), {part: [110]})
    assert evidence.failed_on.tolist() == [NEVER]
    assert DayEvidence(parts, 110, [], ChangeDetector(), {part: [110]}).failed_on.tolist() == [110]


@pytest.mark.parametrize(("copies", "drawn"), [(1, 1100), (300, 550)])
def test_all_of_a_large_fleet_teach_unless_it_has_too_many_values(tmp_path: Path, copies: int, drawn: int) -> None:
    fleet = PlantedFleet(tmp_path, nodes=1100, days=3)
    fleet.grow()
    fleet.write()
    with open_tables(TrendFiles(tmp_path / "measurements.parquet"), START.replace(day=4)) as database:
        make_intervals(database)
        many = f"CREATE TABLE many AS SELECT m.* FROM measurements m, range({copies})"
        database.execute(f"{many}; DROP VIEW measurements; ALTER TABLE many RENAME TO measurements")
        with read_measured(database, database.table("measurements").max("day").fetchall()[0][0]) as (parts, _):
            assert parts.count_drawn_nodes() == pytest.approx(drawn, rel=0.1)
