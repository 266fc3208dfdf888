"""A run and a comparison as rows for a spreadsheet."""

from __future__ import annotations

import csv
from typing import Any


def rows(lines: list[str]) -> list[dict[str, Any]]:
    return list(csv.DictReader(lines))


def test_every_outcome_is_a_row(told, day):
    found = rows(told("csv", day[1]))
    assert len(found) == 14
    assert {row["run"] for row in found} == {"20261121T010000.000-abcdef"}
    assert sorted({row["verdict"] for row in found}) == ["error", "fail", "pass"]
    assert next(row for row in found if row["verdict"] == "fail")["reason"]


def test_a_run_without_outcomes_has_only_titles(told, keep):
    assert len(told("csv", keep())) == 1


def test_every_change_is_a_row(told, day):
    found = rows(told("csv", *day))
    assert len(found) == 12
    assert (found[-1]["kind"], found[-1]["was"], found[-1]["now"]) == ("fixed", "fail", "pass")
