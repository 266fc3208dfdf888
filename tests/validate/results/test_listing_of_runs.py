"""The runs that there are, and which of them a run is compared with."""

from __future__ import annotations

import json

import pytest

from assay.model.errors import AssayError
from assay.tell.report.text_formats import format_run_list_json, format_run_list_text
from assay.validate.results.paired_runs import find_comparable_run, list_earlier_runs


def test_a_line_says_when_by_whom_of_what_and_how_it_came_out(keep, judged):
    files = [
        keep(judged({"heat n1": "pass"}), phases=("zap",)),
        keep(judged({"heat n1": "fail", "heat n2": "pass"}), dirty=True, ended=""),
    ]
    assert list(format_run_list_text(files, 20, pytest.fail)) == [
        "20261121T000000.000-abcdef  2026-11-21 00:00 UTC  ines       c0ffee000000  1 node, zap: 1 passed",
        (
            "20261121T010000.000-abcdef  2026-11-21 01:00 UTC  ines       c0ffee000000+changes  "
            "2 nodes, every phase: 1 passed, 1 failed, has not ended"
        ),
    ]
    assert list(format_run_list_text(files, 1, pytest.fail))[1:] == ["… and 1 older; `--most 2` lists them all"]
    document = json.loads("".join(format_run_list_json(files, 1, pytest.fail)))
    assert (len(document["runs"]), document["of"], document["runs"][0]["counts"]["pass"]) == (1, 2, 1)


def test_a_run_is_compared_with_the_newest_before_that_was_asked_for_as_much(keep, judged):
    every = {"heat n1": "pass", "heat n2": "pass"}
    whole = keep(judged(every))
    other_phase = keep(judged(every), phases=("zap",))
    one = keep(judged({"heat n1": "pass"}))
    broken = keep(judged(every), ended="")
    today = keep(judged(every))
    runs = [whole, other_phase, one, broken, today]
    assert list_earlier_runs(runs, today) == runs[:-1]
    assert find_comparable_run(runs[:-1], today) == whole
    assert find_comparable_run([whole], one) == whole
    assert find_comparable_run([other_phase, one], today) == one, (
        "where none was asked for as much, the one just before"
    )


def test_the_first_run_has_nothing_to_be_compared_with(keep):
    with pytest.raises(AssayError, match="there is no run before"):
        find_comparable_run([], keep())
