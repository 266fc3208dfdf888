"""With a budget, the parts of a verification take turns: each must fit into a visit, all together need not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from assay.declare.check import check_repository
from tests.declare.rules.cases.load_times import visit


@pytest.mark.parametrize(
    ("parts", "fits"),
    [("memory, gpu_burn, battery, training", True), ("memory, dcgm_diag_3", True), ("memory, dcgm_diag_4", False)],
)
def test_each_part_must_fit_into_a_visit(
    parts: str, fits: bool, fleet_with: Callable[[Mapping[str, str | None]], Path]
) -> None:
    problems = check_repository(fleet_with(visit(parts, ", budget_minutes: 20"))).problems
    messages = [problem.message for problem in problems if problem.code == "ASY0207"]
    assert messages == ([] if fits else ["idle: its longest part takes 45 min, and within_minutes is 30"])
