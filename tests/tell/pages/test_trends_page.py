"""The page of what gets worse, from the last answer of the schedule."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from starlette.applications import Starlette

from assay.tell.pages import page_routes
from tests.tell.asgi_calls import Caller, make_state
from tests.tell.fleet_with_history import make_fleet_with_history
from tests.tell.pages.test_worsening import make_answer, make_warning


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
