"""The page of what gets worse, from the last answer of the schedule."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from assay.tell.pages import page_routes
from tests.tell.asgi_calls import Caller, make_state
from tests.tell.fleet_with_history import make_fleet_with_history


def make_warning(**changes: Any) -> dict[str, Any]:
    told = {"node": "n3", "subject": "gpu5", "name": "gpu_temperature", "unit": "C", "from": 60.0, "to": 76.0,
            "peers": 39, "peers_change": 0.2, "score": 9.1, "days": None, "group": "", "rule": "heat",
            "stage": "record", "answer": "test it next", "rate_days": 14.0, "limit": 85.0}  # fmt: skip
    return {**told, **changes}


def make_answer(*warnings: dict[str, Any]) -> dict[str, Any]:
    known = {"at": "2026-11-27T04:11:00+00:00", "cannot_tell": 0, "records": []}
    return {**known, "warnings": list(warnings)}


def read_trends_page(tmp_path: Path, answer: str) -> str:
    state = make_state(make_fleet_with_history(tmp_path), tmp_path / ".assay")
    file = state.context.reports / "trends" / "answer.json"
    file.parent.mkdir(parents=True)
    if answer:
        file.write_text(answer)
    return Caller.reading(Starlette(routes=page_routes.routes(state))).get("/trends").body.decode()


def test_what_gets_worse_leads_to_its_node(tmp_path: Path) -> None:
    answer = make_answer(make_warning(node="n0004"), make_warning(node="gone"))
    page = read_trends_page(tmp_path, json.dumps(answer))
    assert '<a href="/nodes/n0004">n0004</a> gpu5' in page
    assert "gone gpu5" in page, "a node that left the fleet has no page"


@pytest.mark.parametrize("spoilt", ["", "{", "[]", '{"at": "yesterday"}'])
def test_without_an_answer_about_trends_nothing_is_claimed(tmp_path: Path, spoilt: str) -> None:
    assert "<code>trend-evaluation</code> has not run" in read_trends_page(tmp_path, spoilt)


def test_groups_stand_before_single_parts(tmp_path: Path) -> None:
    grouped = make_warning(group="rack r6: 10 of 18 (p 1e-09)", node="n4")
    page = read_trends_page(tmp_path, json.dumps(make_answer(make_warning(), grouped)))
    assert page.index("rack r6: 10 of 18 (p 1e-09). Look there first") < page.index("n4 gpu5") < page.index("n3 gpu5")


def test_names_from_outside_are_escaped_and_the_words_fit_what_is_known(tmp_path: Path) -> None:
    answer = make_answer(make_warning(node="<b>n3</b>"), make_warning(days=[6.4, 14.0, 38.0]))
    page = read_trends_page(tmp_path, json.dumps(answer))
    assert "&lt;b&gt;n3&lt;/b&gt;" in page
    assert "<b>n3</b>" not in page
    plain = re.sub(r"<[^>]+>|&nbsp;", " ", page)
    assert re.search(r"85\s+at this rate in\s+14\s+d", plain)
    assert re.search(r"85 in 6 to 38\s+d\s+\(14\)", plain)


def test_a_quiet_fleet_says_so_and_one_without_data_does_not(tmp_path: Path) -> None:
    assert "Nothing gets worse among its peers." in read_trends_page(tmp_path, json.dumps(make_answer()))


def test_without_any_series_nobody_can_tell(tmp_path: Path) -> None:
    page = read_trends_page(tmp_path, json.dumps({**make_answer(), "series": 0}))
    assert "Nobody can tell what gets worse" in page


def test_what_acting_prevented_stands_in_the_record_of_a_rule(tmp_path: Path) -> None:
    record = {"name": "heat", "stage": "record", "lost_because": "", "right": 5, "wrong": 1, "overtaken": 0,
              "cannot_tell": 0, "open": 1, "precision": None, "failures": 9, "lead_days": None,
              "acts": {"prevented": 3.25, "prevented_interval": [-1.0, 7.5]}}  # fmt: skip
    page = read_trends_page(tmp_path, json.dumps({**make_answer(), "records": [record]}))
    assert '3.2 <span class="soft">-1.0 to 7.5</span>' in page
