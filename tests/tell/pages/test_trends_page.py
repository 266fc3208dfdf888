"""The page of measurements: nearest to their limits, with direction; from real runs in the history."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from starlette.applications import Starlette

from assay.ledger.history.append import append_run
from assay.ledger.history.parquet_files import history_folder
from assay.ledger.runs.writer import OutcomeWriter
from assay.model.outcome import Measurement, Outcome, SuiteRun
from assay.tell.pages import page_routes
from assay.tell.views.node_measurements import Direction, FleetTrends, LimitedSeries, build_trend_table, find_direction
from tests.tell.asgi_calls import Caller, make_state
from tests.tell.fleet_with_history import make_fleet_with_history
from tests.tell.pages.test_worsening import make_answer, make_warning

CHECK = "suites/production/test_gpu.py::test_temperature"


def make_series(*values: float, least: float | None = None, most: float | None = None) -> LimitedSeries:
    points = tuple((f"2026-11-20T{hour:02}:00:00+00:00", value) for hour, value in enumerate(values))
    return LimitedSeries("c", "m", "a/n1", 1, points, "", least, most, "", None)


@pytest.mark.parametrize(
    ("series", "direction"),
    [
        (make_series(60.0, 75.0, most=80.0), "nearer"),
        (make_series(75.0, 60.0, most=80.0), "away"),
        (make_series(75.0, 60.0, least=50.0), "nearer"),
        (make_series(60.0, 60.5, most=80.0), "steady"),
        (make_series(70.0, 85.0, most=80.0), "nearer"),
        (make_series(11.4, 12.3, least=11.2, most=12.8), "away"),
        (make_series(12.0, 12.7, least=11.2, most=12.8), "nearer"),
        (make_series(60.0, most=80.0), "unknown"),
    ],
)
def test_a_direction_is_against_the_limit(series: LimitedSeries, direction: Direction) -> None:
    assert find_direction(series)[0] == direction


@pytest.fixture
def site(tmp_path: Path) -> Caller:
    """The example fleet, whose reports hold the runs of its history."""
    fleet = make_fleet_with_history(tmp_path)
    state = make_state(fleet, tmp_path / ".assay")
    write_runs(state.context.reports)
    return Caller.reading(Starlette(routes=page_routes.routes(state)))


def write_runs(reports: Path) -> None:
    """Write six runs of the last hours: a GPU of n0004 gets hotter, the others stay as they are."""
    for number, temperature in enumerate((61.0, 62.0, 61.5, 64.0, 70.0, 83.0)):
        at = datetime.now(UTC) - timedelta(hours=6 - number)
        run = SuiteRun(f"{at:%Y%m%dT%H%M%S}.000-abcdef", at.isoformat(), ("production",), ("n0004",), who="test")
        file = reports / "runs" / run.id / "run.sqlite"
        file.parent.mkdir(parents=True)
        writer = OutcomeWriter(file, run, {"ended": "whole"})
        for node, gpu in ((node, gpu) for node in ("n0004", "n0008") for gpu in range(8)):
            value = temperature if (node, gpu) == ("n0004", 0) else 55.0 + gpu
            heat = Measurement("temperature", value, "Cel", None, 80.0, "specs/nodes/hgx-h100.yaml:41")
            writer(
                Outcome(CHECK, f"h100-a/{node}/gpu{gpu}", node, "pass", phases=("production",), measurements=(heat,))
            )
        writer.close()
        append_run(file, history_folder(reports))


def test_a_damaged_file_of_history_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    write_runs(tmp_path)
    *_, damaged = sorted((tmp_path / "history" / "measurements").rglob("*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:200])
    table = build_trend_table(tmp_path, datetime.now(UTC), "", "")
    assert table.trends, "five runs are left"
    assert [str(damaged) in text for text in table.unread] == [True]


def test_the_page_shows_the_part_its_limit_and_where_it_goes(site: Caller) -> None:
    page = site.get("/trends").body.decode()
    assert '<a href="/nodes/n0004">n0004/gpu0</a>' in page
    assert "towards its limit, +22" in page
    assert "beyond its limit" in page
    assert re.search(r"about 1\d parts", page)
    assert '<polyline points="' in page


def test_the_address_keeps_the_filter_and_hostile_words_stay_words(site: Caller) -> None:
    assert "Nothing with a limit was measured in pool byo-b." in site.get("/trends?pool=byo-b").body.decode()
    page = site.get("/trends?check=%3Cscript%3E%27%5B").body.decode()
    assert "by a check like &lt;script&gt;&#39;[" in page
    assert "n0004/gpu0" in site.get("/trends?check=temperature").body.decode()


def test_without_runs_nothing_is_claimed(tmp_path: Path) -> None:
    state = make_state(make_fleet_with_history(tmp_path), tmp_path / ".assay")
    page = Caller.reading(Starlette(routes=page_routes.routes(state))).get("/trends")
    assert (page.status, "Nothing with a limit was measured" in page.body.decode()) == (200, True)


def test_an_answer_is_kept_for_some_minutes(tmp_path: Path) -> None:
    trends, now = FleetTrends(), datetime.now(UTC)
    first = trends.read(tmp_path, now)
    write_runs(tmp_path)
    assert trends.read(tmp_path, now + timedelta(minutes=4)) is first
    later = trends.read(tmp_path, now + timedelta(minutes=6))
    assert later.total == 1
    assert later == build_trend_table(tmp_path, now + timedelta(minutes=6), "", "")


def read_trends_page(tmp_path: Path, answer: str) -> str:
    state = make_state(make_fleet_with_history(tmp_path), tmp_path / ".assay")
    file = state.context.reports / "trends" / "answer.json"
    file.parent.mkdir(parents=True)
    if answer:
        file.write_text(answer)
    return Caller.reading(Starlette(routes=page_routes.routes(state))).get("/trends").body.decode()


def test_what_gets_worse_stands_first_with_its_node(tmp_path: Path) -> None:
    answer = make_answer(make_warning(node="n0004"), make_warning(node="gone"))
    page = read_trends_page(tmp_path, json.dumps(answer))
    assert page.index('<a href="/nodes/n0004">n0004</a> gpu5') < page.index("What is nearest to its limit")
    assert "gone gpu5" in page, "a node that left the fleet has no page"


@pytest.mark.parametrize("spoilt", ["", "{", "[]", '{"at": "yesterday"}'])
def test_without_an_answer_about_trends_nothing_is_claimed(tmp_path: Path, spoilt: str) -> None:
    assert "<code>trend-evaluation</code> has not run" in read_trends_page(tmp_path, spoilt)
