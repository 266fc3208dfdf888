"""Numbers that are a typing error, a fraction for a percentage, or a limit that nothing reaches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from assay.declare.check import check_repository
from tests.declare.rules.cases.case import NODE, POLICY, replaced
from tests.declare.rules.cases.parts_and_lengths import MISTAKES

Write = Callable[[Mapping[str, "str | None"]], Path]
POLICY_FILE, NODE_FILE = "specs/policy.yaml", "specs/node.yaml"


@pytest.mark.parametrize(("code", "files"), MISTAKES)
def test_a_number_that_no_hardware_has_is_told(code: str, files: dict[str, str | None], fleet_with: Write) -> None:
    assert code in [problem.code for problem in check_repository(fleet_with(files)).problems]


@pytest.mark.parametrize(
    ("code", "old", "new"),
    [
        ("ASY0243", "rungs: {}", "rungs: {triage: {to: onboard, times: 1000}}"),
        ("ASY0243", "window_minutes: 5", "window_minutes: 0.001"),
        ("ASY0243", "remind_hours: 1", "remind_hours: 9000000"),
        ("ASY0243", "reboots_per_hour: 1", "reboots_per_hour: 61"),
        ("ASY0243", "reboots_per_hour: 1", "reboots_per_hour: 1000000"),
        ("ASY0003", "settle_minutes: 1", "settle_minutes: .inf"),
        ("ASY0221", "percent: 50, min_nodes: 2", "percent: 50, min_nodes: 10000"),
    ],
)
def test_a_number_of_a_policy_that_cannot_be_meant_is_told(code: str, old: str, new: str, fleet_with: Write) -> None:
    found = check_repository(fleet_with(replaced(POLICY_FILE, POLICY, old, new))).problems
    assert code in [problem.code for problem in found]


@pytest.mark.parametrize(
    ("code", "limit"),
    [
        ("ASY0050", "memory_usable: {value: 0.97, unit: '%', source: us}"),
        ("ASY0050", "pcie_width: {value: 12, unit: lanes, source: us}"),
        ("ASY0050", "gpu_clock: {value: 19800, unit: MHz, source: us}"),
        ("ASY0055", "gpu_memory: {value: 815590, unit: MiB, source: us}"),
        ("ASY0003", "memory_errors: {value: .inf, unit: count, source: us}"),
        ("ASY0003", "memory_errors: {value: .nan, unit: count, source: us}"),
    ],
)
def test_a_limit_that_cannot_be_meant_is_told(code: str, limit: str, fleet_with: Write) -> None:
    text = NODE.replace("model: H100", "model: NVIDIA H100 80GB HBM3") + f"  {limit}\n"
    assert code in [problem.code for problem in check_repository(fleet_with({NODE_FILE: text})).problems]


def test_a_small_share_of_events_is_no_fraction(fleet_with: Write) -> None:
    text = NODE + "  packets_lost: {value: 0.1, unit: '%', source: us}\n"
    assert "ASY0050" not in [problem.code for problem in check_repository(fleet_with({NODE_FILE: text})).problems]


@pytest.mark.parametrize(
    ("entry", "told"),
    [("[reboot, cordon]", True), ("[powercycle]", True), ("[zap]", True), ("[drain, zap]", False), ("[ticket]", False)],
)
def test_a_node_from_service_is_closed_before_it_restarts(entry: str, told: bool, fleet_with: Write) -> None:
    found = check_repository(
        fleet_with(replaced(POLICY_FILE, POLICY, "summary: new,", f"summary: new, entry: {entry},"))
    ).problems
    assert ("ASY0244" in [problem.code for problem in found]) is told
