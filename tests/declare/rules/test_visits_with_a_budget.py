"""Loads fit into their time: parts of a verification with a budget take turns, a training is as long as declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from assay.declare.check import check_repository
from tests.declare.rules.cases.case import pool
from tests.declare.rules.cases.load_times import DAY, visit


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


@pytest.mark.parametrize(("deadline_s", "fits"), [(1800, True), (5400, False)])
def test_a_training_of_the_site_must_fit_into_its_phase(
    deadline_s: int, fits: bool, fleet_with: Callable[[Mapping[str, str | None]], Path]
) -> None:
    training = f"command: [train], deadline_s: {deadline_s}, step: {{json: step}}, loss: {{json: loss}}"
    declared = pool("rack: r1, u: 1,", f"rack: r1, u: 1, load_tools: {{training: {{{training}}}}},")
    phase = "  - {name: ours, hours: 1, parts: [site_training]}\n"
    day = f"kind: BurnIn\nname: day\nsources: [us]\nphases:\n{phase}"
    problems = check_repository(fleet_with({DAY: day, **declared})).problems
    messages = [problem.message for problem in problems if problem.code == "ASY0315"]
    said = "ours: one run of each part takes 90 min, and the phase loads the node for 60 min"
    assert messages == ([] if fits else [said])
