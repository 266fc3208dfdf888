"""The results of allure-pytest and those of `assay report` say the same of one session, a check or a node each."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from assay.declare.loader import load_fleet
from assay.ledger.runs.writer import OutcomeWriter
from assay.ledger.store import Ledger
from assay.model.outcome import SuiteRun
from assay.tell.report.allure import allure_result
from assay.tell.report.latest_outcomes import LatestOutcomes

pytest_plugins = ["pytester"]

SUITE = """
import pytest


def test_width(gpu, measure):
    measure("pcie_width", gpu.pcie.width, at_least=32, unit="lanes")


def test_threads(node):
    assert node.host.cpu_threads < 0, "too many threads"


def test_kernel(node):
    assert node.host.kernel


def test_broken(node):
    raise RuntimeError("a mistake of the check")


def test_not_here(node):
    pytest.skip("only on nodes with wings")
"""
NODES = ("n0003", "n0004")
RUN = SuiteRun("20261121T120000.000-abcdef", "2026-11-21T12:00:00+00:00", (), NODES)
SHARED_LABELS = ("pool", "rack", "node", "spec", "phase")


@pytest.fixture
def told(fleet_copy: Any, tmp_path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the results of allure-pytest, and ours of the same outcomes."""
    fleet_copy.suite(SUITE)
    fleet_copy.collected(*NODES)
    folder = tmp_path / "results"
    options = ("-p", "allure_pytest.plugin", "--alluredir", str(folder))
    fleet_copy.pytest("--assay-node", ",".join(NODES), "-k", "test_own", *options)
    plain = [json.loads(path.read_text()) for path in sorted(folder.glob("*-result.json"))]
    outcomes, fleet, reports = fleet_copy.kept(), load_fleet(fleet_copy.root), tmp_path / "reports"
    file = reports / "runs" / RUN.id / "run.sqlite"
    file.parent.mkdir(parents=True)
    writer = OutcomeWriter(file, RUN)
    for outcome in outcomes:
        writer(outcome)
    writer.set_about(ended=RUN.at)
    writer.close()
    with closing(Ledger.open(tmp_path / "ledger.sqlite")) as ledger:
        ledger.record(RUN, outcomes)
        with LatestOutcomes(ledger, reports, {}) as latest:
            return plain, [allure_result(fleet, holder, RUN.id) for holder in latest.read_holders()]


def list_labels(document: dict[str, Any], name: str) -> list[str]:
    return [label["value"] for label in document["labels"] if label["name"] == name]


def list_causes(steps: list[dict[str, Any]]) -> Counter[tuple[str, str]]:
    """Return each status that is not passed, with its reason."""
    told = ((step["status"], step.get("statusDetails", {}).get("message", "").partition("\n")[0]) for step in steps)
    return Counter((status, re.sub(r"^\w+(\.\w+)*: ", "", reason)) for status, reason in told if status != "passed")


def list_measurements(holders: Iterable[dict[str, Any]]) -> Counter[str]:
    return Counter(step["name"] for holder in holders for step in holder.get("steps", ()))


@pytest.mark.parametrize("node", NODES)
def test_both_say_the_same_of_a_node(told: Any, node: str) -> None:
    plain, ours = told
    checks = [document for document in plain if list_labels(document, "node") == [node]]
    (result,) = [document for document in ours if document["name"] == node]
    assert len(checks) == 8 + 4
    for name in SHARED_LABELS:
        assert {*list_labels(result, name)} == {text for check in checks for text in list_labels(check, name)}
    steps = [step for area in result["steps"] for step in area["steps"]]
    assert list_causes(steps) == list_causes(checks)
    assert result["status"] == "failed"
    assert list_measurements(steps).total() == 8
    assert list_measurements(steps) == list_measurements(check for check in checks if check["status"] != "passed")
    assert [area["name"] for area in result["steps"]] == [
        "own: 9 of 12 failed, 1 of 12 could not be judged, 1 of 12 skipped"
    ]
