"""What changed since the week before comes first, and kinds of cables are compared: vendor, length, batch, FEC bins."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from assay.fabric.health.stored_scan import parse_telemetry
from assay.fabric.weekly.aggregation import aggregate_week
from assay.fabric.weekly.evaluation import compare_weeks, evaluate_fabric_week
from assay.fabric.weekly.text_report import format_weekly_text, make_week_answer
from assay.fabric.weekly.week_evidence import (
    StoredWeek,
    choose_week_before,
    forget_old_weeks,
    list_stored_weeks,
    make_week_evidence,
    read_week_evidence,
)
from assay.model.facts import to_json
from tests.support.port_facts import plant_port_facts

END = datetime(2026, 11, 21, tzinfo=UTC)
DAY = timedelta(days=1)


def evaluate(week, change):
    last, cables = week.pass_by(change, 10), list(week.plan.cables)
    gathered = aggregate_week("compute", cables, last, week.store.get, last.at)
    return evaluate_fabric_week(gathered, cables, week.rails, week.design.limits)


@pytest.fixture(scope="module")
def two_weeks(a_week):
    """In the first week two ports are hot; in the second one of them still is, and another port repairs long errors."""

    def first(world, number):
        for port in ("n0004/mlx5_3", "n0005/mlx5_3"):
            plant_port_facts(world, port, temperature_c=71.0)

    def second(world, number):
        plant_port_facts(world, "n0004/mlx5_3", temperature_c=45.0)
        plant_port_facts(world, "n0007/mlx5_1", fec_bins=[10**9, 400, 60, 20, 9, 4, 3, 2, 1, 1, 1, 1, 1, 1])

    return evaluate(a_week, first), evaluate(a_week, second)


def names(ranked):
    return [str(one.port).partition(" (")[0] for one in ranked]


def test_what_is_new_and_what_is_gone_is_told(two_weeks):
    changes = compare_weeks(*two_weeks)
    assert names(changes.new) == ["n0007 mlx5_1 port R1"]
    assert names(changes.gone) == ["n0004 mlx5_3 port R3"]
    assert changes.staying == 1
    assert "1 new, 1 gone, 1 as before" in format_weekly_text(two_weeks[1], changes)


def test_changes_come_before_anything_else(two_weeks):
    changes = compare_weeks(*two_weeks)
    lines = format_weekly_text(two_weeks[1], changes).splitlines()
    assert lines[1].startswith("since 2026-")
    assert lines[2].startswith("  new: n0007 mlx5_1 port R1")
    assert "highest FEC bin 13 wrong symbols" in lines[2]
    assert lines[3].startswith("  gone: n0004 mlx5_3 port R3")
    assert len(to_json(make_week_answer(two_weeks[1], changes))["changes"]["gone"]) == 1


def test_a_manager_that_moved_is_told_and_kept(two_weeks):
    first = two_weeks[1].ports[0].end
    moved = replace(two_weeks[1].week, manager_moves=((END.isoformat(), "0x00000000000000aa", first.guid),))
    kept = read_week_evidence(make_week_evidence(moved))
    line = f"the subnet manager moved from 0x00000000000000aa to {first.device}, seen at 2026-11-21 00:00 UTC"
    assert line in format_weekly_text(replace(two_weeks[1], week=kept)).splitlines()


def test_without_a_week_before_it_says_so(two_weeks):
    assert compare_weeks(None, two_weeks[0]) is None
    assert "there is no evaluation of the week before" in format_weekly_text(two_weeks[0])


@pytest.mark.parametrize(
    ("days", "chosen"), [((7,), 7), ((1, 2, 3), None), ((1, 6, 7, 14), 6), ((13, 14), 13), ((), None)]
)
def test_the_week_before_ended_six_days_ago_or_more(days, chosen):
    stored = [StoredWeek(END - ago * DAY, f"digest-{ago}") for ago in days]
    found = choose_week_before(stored, END)
    assert (found and found.digest) == (f"digest-{chosen}" if chosen else None)


def test_old_weeks_and_this_one_are_forgotten():
    stored = [StoredWeek(END - ago * DAY, str(ago)) for ago in (0, 1, 7, 17)]
    assert [one.digest for one in forget_old_weeks(stored, END)] == ["7", "1"]


def test_a_stored_week_names_those_before_it(two_weeks):
    before = [StoredWeek(END - 7 * DAY, "ab")]
    document = make_week_evidence(two_weeks[0].week, before)
    assert list_stored_weeks(document) == [*before, StoredWeek(document.at, document.digest())]


def test_a_site_s_telemetry_may_have_fec_bins():
    ports = [{"guid": "0x00000000000000aa", "port": 1, "fec_bins": [5, 0, 2]}]
    (facts,), _, problems = parse_telemetry(json.dumps({"schema": "assay.fabric-facts/1", "ports": ports}))
    assert (facts.fec_bins, problems) == ((5, 0, 2), [])
