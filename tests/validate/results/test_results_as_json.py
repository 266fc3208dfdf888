"""A run and a comparison as one JSON document, and outcomes as JSON a line each."""

from __future__ import annotations

import json

from assay.ledger.runs.reader import StoredRun


def test_the_document_holds_the_run_its_counts_and_every_outcome(told, day):
    document = json.loads("\n".join(told("json", day[1])))
    assert document["run"]["id"] == "20261121T010000.000-abcdef"
    assert (document["counts"], document["deciding"], document["ended"]) == (
        {"pass": 3, "fail": 10, "error": 1, "skip": 0},
        9,
        True,
    )
    with StoredRun.open(day[1]) as stored:
        assert document["outcomes"] == [outcome.as_json() for outcome in stored.outcomes()]


def test_a_run_without_outcomes_is_a_document_too(told, keep):
    assert json.loads("\n".join(told("json", keep())))["outcomes"] == []


def test_a_comparison_gives_every_change(told, day):
    document = json.loads("\n".join(told("json", *day)))
    assert (document["old"]["id"], document["new"]["id"]) == (
        "20261121T000000.000-abcdef",
        "20261121T010000.000-abcdef",
    )
    assert (document["counts"]["new_failure"], document["deciding"]["new_failure"], document["worse"]) == (10, 8, 9)
    assert len(document["changes"]) == 12
    assert document["changes"][-1] | {"kind": "fixed", "was": "fail", "now": "pass"} == document["changes"][-1]
    assert document["checks"]["appeared"] == [f"suites/production/test_{one}.py::test_{one}" for one in ("fan", "new")]
