"""A run and a comparison as a plug-in of Nagios says them: one line, performance data, four exit codes."""

from __future__ import annotations

import re

import pytest

from assay.results.comparison.comparison_summary import RunDifferences
from assay.results.comparison.run_comparison import compare_runs
from assay.results.formats.nagios_format import find_comparison_state, find_run_state, format_nagios_line
from assay.results.run_summary import RunSummary
from assay.results.store.reader import StoredRun

LINE = re.compile(r"ASSAY (OK|WARNING|CRITICAL|UNKNOWN) - [^|\n]+( \| (\w+=\d+;;;0(;\d+)? ?)+)?")


def test_a_run_is_one_line_with_performance_data(told, day):
    (said,) = told("nagios", day[1])
    assert LINE.fullmatch(said)
    assert (
        "; wrong on 4 nodes (n0001..n0004), run 20261121T010000.000-abcdef | passed=3;;;0;14 failed=10;;;0;14" in said
    )


@pytest.mark.parametrize(
    ("verdicts", "more", "code"),
    [
        ({"heat n1": "pass", "fans n1": "skip: no fans"}, {}, 0),
        ({"heat n1": "fail", "fans n1": "pass"}, {"known": "https://issues.example/7"}, 1),
        ({"heat n1": "error", "fans n1": "pass"}, {"observed": True}, 1),
        ({"heat n1": "fail", "fans n1": "error"}, {}, 2),
        ({"heat n1": "error", "fans n1": "pass"}, {}, 3),
        ({}, {}, 3),
    ],
)
def test_the_exit_code_is_that_of_a_plug_in(keep, judged, verdicts, more, code):
    with StoredRun.open(keep(judged(verdicts, **more))) as stored:
        assert find_run_state(RunSummary(stored)) == code


def test_a_run_that_has_not_ended_is_unknown(keep, judged, told):
    file = keep(judged({"heat n1": "pass"}), ended="")
    with StoredRun.open(file) as stored:
        assert find_run_state(RunSummary(stored)) == 3
    assert told("nagios", file)[0].startswith("ASSAY UNKNOWN - unreliable, it has not ended; if it was killed")


@pytest.mark.parametrize(
    ("was", "now", "code"),
    [("pass", "pass", 0), ("fail", "pass", 0), ("fail", "fail", 1), ("pass", "fail", 2), ("pass", "error", 3)],
)
def test_a_comparison_is_critical_where_something_fails_anew(keep, judged, told, was, now, code):
    files = [keep(judged({"heat n1": verdict})) for verdict in (was, now)]
    with compare_runs(*files) as comparison:
        assert find_comparison_state(RunDifferences(comparison)) == code
    assert LINE.fullmatch(told("nagios", *files)[0])


def test_no_word_of_a_node_begins_the_performance_data():
    assert format_nagios_line(0, "a|b\nc") == "ASSAY OK - a/b c"
