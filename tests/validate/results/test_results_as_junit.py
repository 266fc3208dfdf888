"""A run as JUnit XML, as Jenkins, GitLab and their like read it."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.tell.report import junit_format
from assay.tell.report.junit_format import escape_xml_text

ALLOWED = {
    "testsuites": ({"name"}, {"testsuite"}),
    "testsuite": ({"name", "timestamp", "tests", "failures", "errors", "skipped"}, {"testcase"}),
    "testcase": ({"classname", "name", "time"}, {"failure", "error", "skipped"}),
    "failure": ({"message"}, set()),
    "error": ({"message"}, set()),
    "skipped": ({"message"}, set()),
}
"""Elements, attributes and children that the schemas of Jenkins' xUnit plug-in and of Maven Surefire have in common."""


@pytest.fixture
def read(told):
    """Return how to read the document back, held to what readers allow and to its own counts."""

    def parse(*files, form="junit", **more):
        root = ElementTree.fromstring("\n".join(told(form, *files, **more)).encode())
        for element in root.iter():
            attributes, children = ALLOWED[element.tag]
            assert (set(element.attrib), {child.tag for child in element} - children) == (attributes, set())
        for suite in root:
            assert int(suite.get("tests")) == len(suite)
            for total, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
                assert int(suite.get(total)) == len(suite.findall(f"testcase/{tag}"))
            assert re.fullmatch(r"2026-11-21T\d\d:\d\d:\d\d", suite.get("timestamp"))
        return root

    return parse


def test_few_outcomes_are_a_case_each_in_the_suite_of_their_pool(read, day, of, keep):
    root = read(day[1])
    assert [suite.get("name") for suite in root] == ["h100-a"]
    case = root[0][0]
    assert (case.get("classname"), case.get("name")) == (
        "suites.production.test_heat",
        "test_heat[h100-a/n0001/gpu0]",
    )
    assert case[0].get("message") == "gpu_temperature 91 °C, expected at most 85 (specs/nodes/h100.yaml:82)"


def test_what_is_known_or_on_trial_breaks_no_build(read, day):
    messages = {one.get("message") for one in read(day[1]).iter("skipped")}
    assert messages == {"known (https://issues.example/7): 0 rpm", r"the check is on trial: x <y> & @z \x1b[1m"}


def test_a_run_that_has_not_ended_is_no_green_build(read, keep, judged):
    suite, _ = read(keep(judged({"heat n1": "pass"}), ended=""))
    assert (suite.get("name"), suite.get("errors")) == ("assay", "1")


def test_each_outcome_is_a_case_in_the_suite_of_its_pool(read, of, keep):
    said = [of("ecc", f"n{number}", "fail", "a\r\nb\u2028c") for number in range(9)]
    placed = [replace(one, subject=f"pool-{number % 3}/{one.node}") for number, one in enumerate(said)]
    cases = read(keep(placed))
    assert [(suite.get("name"), len(suite)) for suite in cases] == [("pool-0", 3), ("pool-1", 3), ("pool-2", 3)]
    assert {case[0].get("message") for suite in cases for case in suite} == {"a\r\nb\u2028c"}


def test_many_outcomes_are_a_case_for_each_node(read, day, monkeypatch, of, keep):
    monkeypatch.setattr(junit_format, "MAX_OUTCOME_CASES", 3)
    monkeypatch.setattr(junit_format, "MAX_NODE_LINES", 2)
    skipped = [of("ecc", "n0009", "skip", "no ECC"), of("fans", "rack-r1", "error", "silent")]
    (suite,) = read(keep([*(one for one in _outcomes(day[1])), *skipped]))
    found = {case.get("name"): [child.tag for child in case] for case in suite}
    assert found == {
        "h100-a/rack-r1": ["error"],
        "n0001": ["failure"],
        "n0002": ["failure"],
        "n0003": ["failure"],
        "n0004": ["failure"],
        "n0005": [],
        "n0009": ["skipped"],
    }
    first = next(case for case in suite if case.get("name") == "n0001")[0]
    assert first.get("message") == "of 5 outcomes: 1 passed, 4 failed"
    assert first.text.count("\n") == 1, "as many lines as are allowed"


def _outcomes(file):
    from assay.ledger.runs.reader import StoredRun

    with StoredRun.open(file) as stored:
        return list(stored.outcomes())


@given(st.text(st.characters(codec="utf-8")))
def test_any_reason_makes_a_document_that_can_be_read(text):
    quoted = junit_format._quoted(text)
    assert ElementTree.fromstring(f"<a b={quoted}/>").get("b") == escape_xml_text(text)
