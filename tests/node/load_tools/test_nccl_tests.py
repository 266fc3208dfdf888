"""What nccl-tests reports is read as it is: a million wrong elements are wrong, and nothing unchecked is right.

The recordings follow the format strings of nccl-tests 2.19 (src/util.cu).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.model.reading import parse_reading
from assay.node.load_tools.nccl import parse_all_reduce, parse_report
from tests.support.places import ROOT

RECORDINGS = ROOT / "tests/data/nccl-tests"


def report(change: Callable[[dict[str, Any]], object] = lambda _: None) -> str:
    document = json.loads((RECORDINGS / "report.json").read_text())
    change(document)
    return json.dumps(document)


def test_a_count_of_a_million_and_more_is_a_number() -> None:
    tree = parse_all_reduce((RECORDINGS / "badly-wrong.txt").read_text())
    assert tree == {"bus_bandwidth_gb_s": {"value": 469.66}, "wrong": {"value": 25_000_000}}


def test_columns_of_each_iteration_and_a_timestamp_hide_no_row() -> None:
    tree = parse_all_reduce((RECORDINGS / "per-iteration.txt").read_text())
    assert tree == {"bus_bandwidth_gb_s": {"value": 468.435}, "wrong": {"value": 3}}


def test_what_was_counted_is_wrong_even_if_the_rest_was_not_checked() -> None:
    text = (RECORDINGS / "per-iteration.txt").read_text().replace("468.30       0", "468.30     N/A")
    assert parse_all_reduce(text)["wrong"] == {"value": 3}


def test_the_report_gives_the_same_and_nothing_of_the_environment() -> None:
    tree = parse_report(report())
    assert tree == {"bus_bandwidth_gb_s": {"value": 468.4305}, "wrong": {"value": 1_000_000}}


def test_results_that_the_report_says_nobody_checked_are_not_right() -> None:
    def forget(document: dict[str, Any]) -> None:
        for half in ("out_of_place", "in_place"):
            document["results"][0][half]["nwrong"] = None
        document["out_of_bounds"] = {"count": 0, "okay": "true"}

    assert "not checked" in parse_report(report(forget))["wrong"]["failed"]


def test_a_report_without_rows_or_bandwidth_is_no_number() -> None:
    empty = parse_report(report(lambda document: document.update(results=[], out_of_bounds={"count": 0})))
    assert parse_reading(empty["wrong"]).kind == parse_reading(empty["bus_bandwidth_gb_s"]).kind == "failed"
    nan = parse_report(report(lambda document: document["average_bus_bandwidth"].update(bandwidth="nan")))
    assert parse_reading(nan["bus_bandwidth_gb_s"]).kind == "failed"


def test_a_report_that_breaks_off_is_none() -> None:
    whole = report()
    for text in (whole[: len(whole) // 2], "", "[]", '{"results": []}', "3"):
        with pytest.raises(ValueError, match=r"."):
            parse_report(text)


@given(st.text() | st.binary().map(lambda junk: junk.decode(errors="replace")))
def test_any_text_is_a_reading_and_no_pass(text: str) -> None:
    assert "failed" in parse_all_reduce(text)["wrong"]
