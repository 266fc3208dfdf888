"""The rows and pictures of what gets worse: escaped, clipped, and with the way to the limit."""

from __future__ import annotations

import re
from typing import Any

import pytest

from assay.model.page import SIZE, draw_course, group_rows, render_worsening

RATE = {"rate_days": 14.0, "limit": 85.0}


def make_warning(**changes: Any) -> dict[str, Any]:
    days = list(range(20_000, 20_090))
    course = {"days": days, "values": [60 + max(0, day - 20_070) for day in days], "peer_days": days,
              "low": [58.0] * 90, "high": [62.0] * 90}  # fmt: skip
    told = {"node": "n3", "subject": "gpu5", "name": "gpu_temperature", "unit": "C", "from": 60.0, "to": 76.0,
            "peers": 39, "peers_change": 0.2, "score": 9.1, "days": None, "group": "", "rule": "heat",
            "stage": "record", "answer": "test it next", "course": course}  # fmt: skip
    return {**told, **RATE, **changes}


def make_answer(*warnings: dict[str, Any]) -> dict[str, Any]:
    known = {"at": "2026-11-27T04:11:00+00:00", "cannot_tell": 0, "records": []}
    return {**known, "warnings": list(warnings)}


def read_points(text: str) -> list[tuple[float, float]]:
    return [tuple(map(float, pair.split(","))) for pair in text.split()]  # type: ignore[misc]


def test_a_course_stays_in_its_field_and_climbs_out_of_the_band() -> None:
    wild = make_warning()
    wild["course"]["values"][10] = 4_000.0
    drawn = draw_course(wild)
    assert drawn is not None
    points = read_points(drawn.line)
    assert all(0 <= x <= SIZE[0] and 0 <= y <= SIZE[1] for x, y in points)
    top_of_band = min(y for _, y in read_points(drawn.band))
    assert points[-1][1] < top_of_band, "the wild reading does not flatten the climb"


def test_the_way_ahead_ends_at_the_limit_on_the_days_of_the_range() -> None:
    straight, ranged = draw_course(make_warning()), draw_course(make_warning(days=[6.0, 14.0, 30.0]))
    assert straight is not None
    assert ranged is not None
    now, *ahead = read_points(ranged.fan)
    assert [y for _, y in ahead] == [float(ranged.limit)] * 2
    assert (ahead[1][0] - now[0]) / (ahead[0][0] - now[0]) == pytest.approx(5, rel=0.01)
    assert len(set(read_points(straight.fan)[1:])) == 1


def test_without_a_limit_or_a_course_nothing_is_made_up() -> None:
    drawn = draw_course(make_warning(limit=None, rate_days=None))
    assert drawn is not None
    assert (drawn.limit, drawn.fan) == ("", "")
    assert draw_course(make_warning(course=None)) is None


def test_groups_stand_before_single_parts() -> None:
    rows = group_rows(make_answer(make_warning(), make_warning(group="rack r6: 10 of 18 (p 1e-09)", node="n4")))
    assert [(group, len(some)) for group, some in rows] == [("rack r6: 10 of 18 (p 1e-09)", 1), ("", 1)]


def test_names_from_outside_are_escaped_and_the_words_fit_what_is_known() -> None:
    page = render_worsening(make_answer(make_warning(node="<b>n3</b>"), make_warning(days=[6.4, 14.0, 38.0])))
    assert "&lt;b&gt;n3&lt;/b&gt;" in page
    assert "<b>n3</b>" not in page
    plain = re.sub(r"<[^>]+>|&nbsp;", " ", page)
    assert re.search(r"85\s+at this rate in\s+14\s+d", plain)
    assert re.search(r"85 in 6 to 38\s+d\s+\(14\)", plain)


def test_a_quiet_fleet_says_so() -> None:
    assert "Nothing gets worse among its peers." in render_worsening(make_answer())
    assert "Nobody can tell what gets worse" in render_worsening({**make_answer(), "series": 0})
