"""`check` refuses limits and a breaker that contradict each other, and says what to write instead."""

from __future__ import annotations

import pytest

from assay.declare.check import check_repository
from tests.declare.rules.cases.case import POLICY


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("pool_percent: 50", "pool_percent: 0.5", "limits.pool_percent is 0.5 %: less than one node of a hundred"),
        ("percent: 50, min", "percent: 0.3, min", "breaker.percent is 0.3 %: less than one node of a hundred"),
        (
            "pool_percent: 50",
            "pool_percent: 25",
            "breaker.percent is 50 %, but automation stops at limits.pool_percent",
        ),
        (
            "window_minutes: 5",
            "window_minutes: 5, by_class: [{hours: 1, percent: 90, min_nodes: 2}]",
            "breaker.by_class.0.percent is 90 %, but automation stops at limits.pool_percent, 50 %",
        ),
    ],
)
def test_what_contradicts_is_told_at_its_line(fleet_with, old, new, says) -> None:
    assert old in POLICY
    found = check_repository(fleet_with({"specs/policy.yaml": POLICY.replace(old, new, 1)})).problems
    (told,) = [one for one in found if one.message.startswith(says)]
    assert told.code == "ASY0222"
    assert told.fix
