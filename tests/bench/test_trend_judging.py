"""The judge of trends on planted fleets: one who sees everything is right, one who sees nothing finds nothing."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import duckdb
import numpy as np
import pytest

from bench.trend_disks import match_false, read_disks, score_by_rules
from bench.trend_judge import judge_warnings
from bench.trend_methods import name_above
from bench.trend_worlds import KINDS, START, make_world, world_time, write_world

DAYS = list(range(95, 180, 2))


@pytest.mark.parametrize("kind", KINDS)
def test_who_names_exactly_what_drifts_finds_all_and_nothing_else(kind: str) -> None:
    world = make_world(kind, 7, nodes=100)
    named = {
        day: [(one.node, one.measurement) for one in world.drifts if one.onset <= day < (one.fails or 999)]
        for day in DAYS
    }
    judged = judge_warnings(world, DAYS, named)
    assert judged.foreseeable > 0
    assert (judged.recall, judged.false_rate, judged.precision) == (1.0, 0.0, 1.0)
    assert judged.recall_of_all < 1, "nobody can foresee the abrupt ones"


def test_who_names_nothing_finds_nothing() -> None:
    judged = judge_warnings(make_world("plain", 7, nodes=100), DAYS, {})
    assert (judged.recall, judged.false) == (0.0, 0)


def test_what_is_named_each_day_is_a_false_warning_each_thirty_days() -> None:
    world = make_world("plain", 7, nodes=100)
    drifting = {one.node for one in world.drifts} | {node for node, _ in world.find_warmed()}
    healthy = next(node for node in range(100) if node not in drifting)
    assert judge_warnings(world, DAYS, {day: [(healthy, 1)] for day in DAYS}).false == 3


def test_a_warning_on_the_day_of_the_failure_comes_too_late() -> None:
    world = make_world("plain", 7, nodes=100)
    drift = next(one for one in world.drifts if one.fails is not None and one.fails > DAYS[0])
    late = judge_warnings(world, [DAYS[0], drift.fails or 0], {drift.fails or 0: [(drift.node, drift.measurement)]})
    assert late.leads == ()


def test_what_is_above_the_threshold_is_named() -> None:
    scores = np.zeros((1, 1, 10))
    scores[0, 0, [3, 6, 8]] = 9.0
    assert [day for day, named in name_above(scores, range(10), 5.0).items() if named] == [3, 6, 8]


def test_the_same_seed_gives_the_same_world(tmp_path: Path) -> None:
    paths = [write_world(make_world("oddballs", 3, nodes=40, days=120), tmp_path / name) for name in ("a", "b")]
    assert [path.read_bytes() for path in paths[0]] == [path.read_bytes() for path in paths[1]]
    assert world_time(1) - world_time(0) == timedelta(days=1)
    assert world_time(0).replace(tzinfo=START.tzinfo) == START


def test_disks_are_read_by_day_and_a_rule_gets_as_many_false_warnings_as_ours(tmp_path: Path) -> None:
    rows = [
        ("good", 0, 1440, 0, 0.0),
        ("worn", 0, 960, 0, 3.0),
        ("worn", 960, 1200, 1, 90.0),
        ("odd", 0, 1440, 0, 50.0),
    ]
    columns = "serial_number VARCHAR, tstart INT, tstop INT, fails INT, smart_5 DOUBLE"
    with duckdb.connect() as database:
        database.execute(f"CREATE TABLE disks ({columns})")
        database.executemany("INSERT INTO disks VALUES (?, ?, ?, ?, ?)", rows)
        known = "*, 'ST1' AS model, 100.0 AS min_date, 160.0 AS max_date, 0 AS min_hours, smart_5 AS smart_187"
        other = "NULL::DOUBLE AS smart_197, NULL::DOUBLE AS smart_198"
        database.table("disks").project(f"{known}, {other}").write_parquet(str(tmp_path / "disks.parquet"))
    world = read_disks(tmp_path / "disks.parquet", "ST1", first=100, days=60)
    assert (world.names, world.nodes) == (("smart_5", "smart_187"), 3)
    (failed,) = world.drifts
    assert (failed.onset, failed.fails) == (20, 50)
    assert list(world.values[failed.node, 0, [0, 39, 45, 50]]) == [3, 3, 90, 90]
    assert np.isnan(world.values[failed.node, 0, 51])
    rules = score_by_rules(world)
    grown, level = (match_false(world, rules[f"sum of logarithms of {kind}"], [10, 45], 0) for kind in (
        "growth in 14 days", "levels"))  # fmt: skip
    assert [(len(judged.leads), judged.false) for judged in (grown, level)] == [(1, 0), (1, 0)]
