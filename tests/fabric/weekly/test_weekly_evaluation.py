"""The weekly evaluation finds each thing that was planted, in its place, and nothing beside it."""

from __future__ import annotations

import re
import shutil
from copy import copy
from dataclasses import replace

import pytest

from assay.fabric.weekly.aggregation import aggregate_week
from assay.fabric.weekly.evaluation import WeeklyEvaluation, evaluate_fabric_week
from assay.fabric.weekly.page import SHADES, HeatMapCell, draw_error_heat_maps, render_weekly_page
from assay.fabric.weekly.text_report import format_weekly_text, make_week_answer
from assay.fabric.weekly.week_evidence import make_week_evidence, read_week_evidence
from assay.lab.fabric.port_telemetry import plant_port_facts
from assay.model.facts import to_json
from assay.observe.evidence_store import EvidenceStore
from tests.support.browser import measure_overflow, needs_browser

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
    text, page = format_weekly_text(one), render_weekly_page(one)
    assert "  note: <line 9>\n  and 2 more" in text
    assert "The newest discovery of the cables" in page
    assert "note: &lt;line 9&gt;" in page
    assert "note: &lt;line 10&gt;" not in page


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
    ("spine-02 port 6/2", "limit", "symbol_errors"),
    ("leaf-su01-r5 port 20/2", "limit", "symbol_ber"),
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


def test_the_page_needs_nothing_beside_it_and_shows_each_worst_port(aged):
    page = render_weekly_page(aged)
    assert not re.search(r"(?:src|href)=|url\(|@import|<script", page)
    assert page.count("<rect") > 600, "a cell for each port of the switches"
    assert page.count("<polyline") == 1
    for ranked in aged.worst:
        assert f"<b>{ranked.port.end.device}</b>" in page
        assert ranked.port.summary.serial in page


@pytest.mark.slow
@needs_browser
def test_the_page_fits_the_window_of_a_phone(aged):
    assert measure_overflow(render_weekly_page(aged), 360) == 0


def test_what_modules_call_themselves_is_escaped(week):
    def hostile(world, number):
        plant_port_facts(world, "n0004/mlx5_3", vendor="<script>alert(1)</script>", temperature_c=90.0)

    page = render_weekly_page(evaluated(week, hostile, scans=2))
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_a_batch_whose_modules_fail_together_comes_first(week):
    def hot_batch(world, number):
        for node in range(1, 7):
            plant_port_facts(
                world, f"n{node:04}/mlx5_0", vendor="Third", part="T-1", serial=f"T25100{node:03}", temperature_c=80.0
            )

    first = evaluated(week, hot_batch, scans=2).batches[0]
    assert (first.name, first.ports, first.standing_out, first.share) == ("Third T-1 T25100", 6, 6, 1.0)


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


def drawn_cells(maps) -> list[HeatMapCell]:
    return [cell for one in maps.maps for row in one.rows for cell in row.cells]


def test_every_port_is_in_the_heat_maps_and_the_worst_is_darkest(week):
    def wear(world, number):
        plant_port_facts(world, "n0004/mlx5_3", counters={"SymbolErrorCounter": 121_000 * number})
        plant_port_facts(world, "spine-02[12]", counters={"SymbolErrorCounter": 27 * number})

    one = evaluated(week, wear, scans=3)
    maps = draw_error_heat_maps(one.ports)
    cells = drawn_cells(maps)
    assert len(cells) == len(one.ports), "a cell for each port, those of the adapters too"
    worst = max(port.summary.errors for port in one.ports)
    assert [cell.description.partition(" (")[0] for cell in cells if cell.shade == SHADES] == ["n0004 mlx5_3 port R3"]
    assert max(cell.shade for cell in cells if "spine-02" in cell.description) <= 2, "54 errors are not dark"
    assert maps.shades[-1] == f"to {worst:,}"
    page = render_weekly_page(one)
    assert page.count("<rect") >= len(one.ports)
    assert ">R1</text>" in page, "the map of the adapters names its columns"


@pytest.mark.parametrize("end", ["n0004/mlx5_3", "leaf-su01-r3[4]", "spine-02[12]"])
def test_in_the_map_of_a_large_fabric_the_worst_port_is_darkest_wherever_it_is(week, end, monkeypatch):
    monkeypatch.setattr("assay.fabric.weekly.page.MAX_SWITCHES_BY_PORT", 0)

    def wear(world, number):
        plant_port_facts(world, end, counters={"SymbolErrorCounter": 9000 * number})
        plant_port_facts(world, "leaf-su01-r6[7]", counters={"SymbolErrorCounter": 2 * number})

    cells = drawn_cells(draw_error_heat_maps(evaluated(week, wear, scans=3).ports))
    (dark,) = [cell for cell in cells if cell.shade == SHADES]
    assert f"{end.partition('/')[0].partition('[')[0]} " in dark.description
    assert {cell.shade for cell in cells if "leaf-su01-r6" in cell.description.partition(":")[0]} == {1}
