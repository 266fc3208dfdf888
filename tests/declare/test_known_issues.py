"""Known issues as data: what an entry fits, until when, and that a list which cannot be read is no empty list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from assay.declare.check import check_repository
from assay.declare.loader import load_fleet
from assay.model.errors import AssayError
from assay.model.node import Node
from assay.model.outcome import Outcome
from assay.model.specs.known_issues import ExcuseCandidate, KnownIssue, find_known_issue

Write = Callable[[Mapping[str, "str | None"]], Path]
NODE = Node("n0007", "h100-a", "lab1", "r01", 4, "s", "hgx", "managed")
CHECK = "suites/production/test_gpu.py::test_temperature"
HOT = Outcome(CHECK, "h100-a/n0007/gpu3", "n0007", "fail", "91 °C")
LISTED = """kind: KnownIssues
name: known
issues:
  - issue: https://git.example/issues/1
    match: {check: "suites/test_heat.py::test_heat", node: n1}
    reason: it is counted twice
    owner: us
    expires: 2027-02-01
"""


def issue(expires: str = "2026-12-01", number: int = 1, **match: str) -> KnownIssue:
    said: dict[str, Any] = {"reason": "counted twice", "owner": "us", "expires": expires}
    link = f"https://git.example/issues/{number}"
    return KnownIssue.model_validate({"issue": link, "match": {"check": CHECK, **match}, **said})


@pytest.mark.parametrize(
    ("match", "fits"),
    [
        ({}, True),
        ({"check": "suites/production/*::test_temp*"}, True),
        ({"check": "suites/seatrial/*"}, False),
        ({"node": "n00*", "pool": "h100-?", "rack": "r0[12]", "subject": "*/gpu3"}, True),
        ({"node": "n01*"}, False),
        ({"pool": "b200"}, False),
        ({"rack": "r02"}, False),
        ({"subject": "*/gpu[0-2]"}, False),
        ({"check": "SUITES/production/*"}, False),
    ],
)
def test_every_pattern_of_an_entry_must_fit(match: dict[str, str], fits: bool) -> None:
    assert (find_known_issue([issue(**match)], HOT, NODE, datetime(2026, 11, 21, tzinfo=UTC)) is not None) is fits


def test_an_entry_excuses_until_the_midnight_of_its_day_and_not_a_moment_longer() -> None:
    ends = datetime(2026, 12, 1, tzinfo=UTC)
    assert find_known_issue([issue()], HOT, NODE, ends - timedelta(microseconds=1)) is not None
    assert find_known_issue([issue()], HOT, NODE, ends) is None


def test_of_several_entries_the_one_that_stays_longest_is_named() -> None:
    issues = [issue(), issue("2027-01-01", 2), issue("2026-11-22", 3)]
    found = find_known_issue(issues, HOT, NODE, datetime(2026, 11, 21, tzinfo=UTC))
    assert found is not None
    assert found.annotation == "known: https://git.example/issues/2 until 2027-01-01"


def test_only_a_failure_can_be_excused() -> None:
    now = datetime(2026, 11, 21, tzinfo=UTC)
    assert all(find_known_issue([issue()], replace(HOT, verdict=one), NODE, now) is None for one in ("error", "skip"))


def test_racks_and_fabrics_are_on_no_one_node() -> None:
    assert ExcuseCandidate.from_node(CHECK, "h100-a/rack-r01", None) == (CHECK, "h100-a/rack-r01", "", "h100-a", "r01")
    assert ExcuseCandidate.from_node(CHECK, "fabric/compute/leaf-1", None) == (
        CHECK,
        "fabric/compute/leaf-1",
        "",
        "",
        "",
    )


@pytest.mark.parametrize("lacking", ["issue", "match", "reason", "owner", "expires"])
def test_an_entry_that_leaves_something_out_is_refused(lacking: str) -> None:
    whole = issue().model_dump()
    with pytest.raises(ValidationError, match=lacking):
        KnownIssue.model_validate({name: value for name, value in whole.items() if name != lacking})


@pytest.mark.parametrize("day", ["2026-02-30", "soon", "2026-1-1", 20261201, None, True])
def test_a_day_that_there_is_not_is_refused(day: Any) -> None:
    with pytest.raises(ValidationError, match="expires"):
        KnownIssue.model_validate({**issue().model_dump(), "expires": day})


def test_a_day_may_stand_without_quotes(fleet_with: Write) -> None:
    fleet = load_fleet(fleet_with({"specs/known-issues.yaml": LISTED}))
    assert [one.expires for one in fleet.known_issues] == ["2027-02-01"]


def test_a_fleet_without_a_list_has_no_known_issues(fleet_with: Write) -> None:
    assert load_fleet(fleet_with({})).known_issues == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "kind: KnownIssues\nname: known\nissues: [\n",
        "kind: KnownIsues\nname: known\n",
        LISTED.replace("owner: us", "ovner: us"),
        LISTED.replace("https://git.example/issues/1", "ask Ann"),
        LISTED.replace("node: n1", "when: today"),
        LISTED.replace("2027-02-01", "2027-02-30"),
        LISTED.replace('"suites/test_heat.py::test_heat", node: n1', '"*"'),
    ],
)
def test_a_list_that_cannot_be_read_is_trouble_and_no_empty_list(text: str, fleet_with: Write) -> None:
    with pytest.raises(AssayError, match=r"specs/known-issues\.yaml"):
        load_fleet(fleet_with({"specs/known-issues.yaml": text}))


def test_check_tells_of_an_end_two_weeks_before_and_of_an_error_from_then_on(fleet_with: Write) -> None:
    root, ends = fleet_with({"specs/known-issues.yaml": LISTED}), datetime(2027, 2, 1, tzinfo=UTC)

    def told(before: timedelta) -> tuple[list[str], bool]:
        report = check_repository(root, ends - before)
        return [f"{one.severity} {one.code}" for one in report.problems], report.is_clean

    assert told(timedelta(days=14, seconds=1)) == ([], True)
    assert told(timedelta(days=14)) == (["notice ASY0171"], True)
    assert told(timedelta(seconds=1)) == (["notice ASY0171"], True)
    assert told(timedelta()) == (["error ASY0170"], False)
