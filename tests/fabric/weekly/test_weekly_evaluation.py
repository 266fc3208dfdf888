"""The weekly evaluation finds each thing that was planted, in its place, and nothing beside it."""

from __future__ import annotations

import re
import shutil
from copy import copy
from dataclasses import replace

import pytest

from assay.fabric.weekly.aggregation import aggregate_week
from assay.fabric.weekly.evaluation import WeeklyEvaluation, evaluate_fabric_week
from assay.fabric.weekly.text_report import format_weekly_text, make_week_answer
from assay.fabric.weekly.week_evidence import make_week_evidence, read_week_evidence
from assay.model.facts import to_json
from assay.observe.evidence_store import EvidenceStore
from tests.support.port_facts import plant_port_facts

SCANS = 12


def evaluated(week, change, scans=SCANS, days=7) -> WeeklyEvaluation:
    return looked_at(week, week.pass_by(change, scans), days)


def looked_at(week, last, days=7.0) -> WeeklyEvaluation:
    cables = list(week.plan.cables)
    gathered = read_week_evidence(
        make_week_evidence(aggregate_week("compute", cables, last, week.store.get, last.at, days))
    )
    return evaluate_fabric_week(gathered, cables, week.rails, week.design.limits)


def found(one: WeeklyEvaluation) -> set[tuple[str, str, str]]:
    return {
        (str(ranked.port.end).partition(" (")[0], of.kind, of.what) for ranked in one.ranked for of in ranked.findings
    }


def test_a_quiet_week_says_so_in_one_line(quiet_week):
    one = looked_at(quiet_week, quiet_week.scans[-1], days=7)
    assert found(one) == set()
    assert (
        format_weekly_text(one)
        .splitlines()[0]
        .startswith("fabric compute: nothing stands out (416 links, 12 scans, 2026-11-14")
    )
    assert (to_json(make_week_answer(one))["verdict"], to_json(make_week_answer(one))["ports"]) == ("well", 832)


def test_what_was_foreign_in_the_newest_discovery_is_told(quiet_week):
    remarks = tuple(f"note: <line {number}>" for number in range(12))
    one = replace(looked_at(quiet_week, quiet_week.scans[-1]), remarks=remarks)
    assert to_json(make_week_answer(one))["discovery"] == list(remarks)
    assert "  note: <line 9>\n  and 2 more" in format_weekly_text(one)


def age(world, number):
    plant_port_facts(world, "n0004/mlx5_3", temperature_c=71.0)
    plant_port_facts(world, "leaf-su01-r2[7]", rx_power_dbm=[round(1.0 - 0.1 * number, 2), 1.0, 1.1, 1.0])
    plant_port_facts(world, "n0011/mlx5_6", counters={"LinkDownedCounter": 3 * number})
    plant_port_facts(world, "spine-02[12]", counters={"SymbolErrorCounter": 900 * number})
    plant_port_facts(world, "leaf-su01-r5[40]", ber={"symbol": 3e-11})


PLANTED = {
    ("n0011 mlx5_6 port R6", "repeated", "down_scans"),
    ("spine-02 port 6/2", "repeated", "error_scans"),
    ("n0004 mlx5_3 port R3", "outlier", "module temperature"),
    ("leaf-su01-r2 port 4/1", "drift", "received light"),
    ("n0011 mlx5_6 port R6", "flap", "downs a day"),
    ("spine-02 port 6/2", "outlier", "errors a day"),
    ("leaf-su01-r5 port 20/2", "outlier", "bit error ratio"),
}


@pytest.fixture(scope="module")
def aged(a_week) -> WeeklyEvaluation:
    return evaluated(a_week, age)


def test_everything_planted_is_found_in_its_place_and_nothing_else(aged):
    assert found(aged) == PLANTED
    said = format_weekly_text(aged)
    assert "n0011 mlx5_6 port R6 (r03 U24), cable to leaf-su01-r6 port 6/1 (r07 U34)" in said
    assert "flap: went down 12 times within a day, more than 5" in said
    assert re.search(r"outlier: module temperature 71 °C, where (all|the) adapters .*have \d", said)


def test_only_the_days_asked_for_are_looked_at(quiet_week):
    assert looked_at(quiet_week, quiet_week.scans[-1], days=1).week.scans == 5


def test_a_scan_that_is_not_kept_any_more_ends_history_and_nothing_else(quiet_week, tmp_path):
    week, last = copy(quiet_week), quiet_week.scans[4]
    week.store = EvidenceStore(shutil.copytree(quiet_week.store.folder, tmp_path / "evidence"))
    before = week.store.get(last.read("previous").value)
    gone = before.read("previous").value
    (week.store.folder / "objects" / gone[:2] / f"{gone}.json.gz").unlink()
    assert looked_at(week, last).week.scans == 2


def test_what_a_scan_could_not_tell_is_said(quiet_week):
    one = looked_at(quiet_week, quiet_week.scans[2], days=7)
    assert "nothing is known yet: 3 scans over 12 h: a week needs" in format_weekly_text(one).splitlines()[0]
    assert to_json(make_week_answer(one))["verdict"] == "unknown", "what could not be seen is not well"
    assert one.unknown_reasons == (
        "3 scans over 12 h: a week needs 8 scans over 48 h",
        "this is the first scan with counters: growth is known from the next scan on (1 of 3 scans)",
    )


def test_the_json_names_places_and_reasons(aged):
    worst = to_json(make_week_answer(aged))["worst"]
    flap = next(one for one in worst if one["findings"][0]["kind"] == "flap")
    place = {"device": "n0011 mlx5_6", "label": "R6", "rack": "r03", "u": 24, "node": "n0011"}
    assert place.items() <= flap["port"].items()
    assert (flap["rail"], flap["far"]["device"]) == (6, "leaf-su01-r6")
