"""Allure results have identities that last, and a second run shows as a trend."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from assay.fleet.load import load_fleet
from assay.harness.allure import measured, result
from assay.harness.report import Tools, build, last_told, newest, read_runs
from assay.model.errors import Trouble
from assay.model.outcome import Measurement, Outcome, Run

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
FLEET = load_fleet(ROOT)
RUN = Run("20261121T120000.000-abcdef", "2026-11-21T12:00:00+00:00", ("seatrial",), ("n0003",))
WIDTH = Measurement("pcie_width", 8, "lanes", at_least=16.0, source="specs/nodes/hgx-h100.yaml:58")
FAILED = Outcome(
    "suites/seatrial/test_gpu.py::test_pcie_link", "h100-a/n0003/gpu3", "n0003", "fail", "pcie_width 8 lanes",
    "gpu.pcie.degraded", ("seatrial", "production"), evidence="ab" * 32, evidence_at="2026-11-21T11:59:00+00:00",
    measurements=(WIDTH,),
)  # fmt: skip


def labels_of(document: dict) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for label in document["labels"]:
        found.setdefault(label["name"], []).append(label["value"])
    return found


def has_node() -> bool:
    try:
        Tools.find(ROOT)
    except Trouble:
        return False
    return True


def test_a_result_carries_where_when_and_by_which_specs():
    labels = labels_of(result(FLEET, RUN, FAILED))
    assert (labels["pool"], labels["rack"], labels["node"]) == (["h100-a"], ["r01"], ["n0003"])
    assert labels["phase"] == ["seatrial", "production"]
    assert labels["fault"] == ["gpu.pcie.degraded"]
    assert labels["spec"][0].startswith(FLEET.commit[:12] or "no commit")


def test_a_result_shows_each_measurement_with_its_limit():
    (step,) = result(FLEET, RUN, FAILED)["steps"]
    assert step["name"] == "pcie_width 8 lanes (at least 16; specs/nodes/hgx-h100.yaml:58)"
    assert step["status"] == "failed"
    assert measured(Measurement("cables_matching", 416)) == "cables_matching 416"


@pytest.mark.parametrize(
    ("verdict", "status"), [("pass", "passed"), ("fail", "failed"), ("error", "broken"), ("skip", "skipped")]
)
def test_each_verdict_has_its_status(verdict, status):
    assert result(FLEET, RUN, replace(FAILED, verdict=verdict))["status"] == status


def test_the_identity_is_check_and_subject_and_nothing_that_varies():
    first = result(FLEET, RUN, FAILED)
    later = result(
        replace(FLEET, commit="f" * 40),
        replace(RUN, id="20261122T000000.000-000000", at="2026-11-22T00:00:00+00:00"),
        replace(FAILED, verdict="pass", reason="", evidence="cd" * 32, duration_s=9.0, measurements=()),
    )
    for key in ("historyId", "testCaseId", "fullName", "parameters", "name"):
        assert first[key] == later[key], key
    other = result(FLEET, RUN, replace(FAILED, subject="h100-a/n0003/gpu4"))
    assert other["historyId"] != first["historyId"]
    assert other["parameters"] != first["parameters"]


def test_a_rack_and_a_fabric_have_labels_too():
    rack = labels_of(result(FLEET, RUN, replace(FAILED, subject="h100-a/rack-r01", node="")))
    assert (rack["pool"], rack["rack"]) == (["h100-a"], ["r01"])
    assert labels_of(result(FLEET, RUN, replace(FAILED, subject="fabric/compute", node="")))["node"] == ["compute"]


def keep(reports: Path, run: Run, *outcomes: Outcome) -> None:
    """Write a run as `validate` does."""
    home = reports / "runs" / run.id
    home.mkdir(parents=True)
    plain = {name: getattr(run, name) for name in run.__slots__}
    (home / "run.json").write_text(json.dumps(plain))
    (home / "outcomes.jsonl").write_text("".join(json.dumps(one.as_json()) + "\n" for one in outcomes))


SECOND = replace(RUN, id="20261121T130000.000-abcdef", at="2026-11-21T13:00:00+00:00")
MENDED = replace(FAILED, verdict="pass", reason="", evidence_at="2026-11-21T12:59:00+00:00")


def test_the_picture_is_the_newest_outcome_of_each_check_and_subject(tmp_path):
    other = replace(FAILED, subject="h100-a/n0004/gpu3", node="n0004")
    keep(tmp_path, RUN, FAILED, other)
    keep(tmp_path, SECOND, MENDED)
    runs = read_runs(tmp_path / "runs")
    assert [run.id for run, _ in runs] == [RUN.id, SECOND.id]
    assert newest(runs, RUN.id) == [(RUN, FAILED), (RUN, other)]
    assert newest(runs, SECOND.id) == [(SECOND, MENDED), (RUN, other)]


def test_older_evidence_judged_later_does_not_hide_newer_evidence(tmp_path):
    keep(tmp_path, RUN, MENDED)
    keep(tmp_path, SECOND, FAILED)
    assert newest(read_runs(tmp_path / "runs"), SECOND.id) == [(RUN, MENDED)]


def test_there_must_be_a_run_to_report_on(tmp_path):
    with pytest.raises(Trouble, match="there is no run"):
        build(FLEET, tmp_path)


def test_without_node_it_says_what_to_run(tmp_path, monkeypatch):
    keep(tmp_path, RUN, FAILED)
    monkeypatch.setattr("assay.harness.report.sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(Trouble, match="npm ci"):
        build(FLEET, tmp_path)


@pytest.mark.skipif(not has_node(), reason="node_modules is not installed: make test installs it")
def test_a_second_run_adds_a_point_to_the_history(tmp_path):
    keep(tmp_path, RUN, FAILED)
    page = build(FLEET, tmp_path)
    assert page.exists()
    assert last_told(tmp_path / "history.jsonl") == RUN.id
    keep(tmp_path, SECOND, MENDED)
    assert build(FLEET, tmp_path) == page
    build(FLEET, tmp_path)  # nothing new: nothing is added
    points = [json.loads(line) for line in (tmp_path / "history.jsonl").read_text().splitlines()]
    assert [point["name"].split()[-1] for point in points] == [RUN.id, SECOND.id]
    seen = [[one["status"] for one in point["testResults"].values()] for point in points]
    assert seen == [["failed"], ["passed"]]
    assert len({tuple(point["testResults"]) for point in points}) == 1


def test_plain_pytest_with_alluredir_carries_the_same_labels(fleet_copy, tmp_path):
    fleet_copy.collected("n0003")
    folder = tmp_path / "results"
    options = ("-p", "allure_pytest.plugin", "--alluredir", str(folder))
    fleet_copy.pytest("--node", "n0003", "-k", "pcie_link and gpu3", *options)
    (document,) = [json.loads(path.read_text()) for path in folder.glob("*-result.json")]
    labels = labels_of(document)
    assert (labels["pool"], labels["rack"], labels["node"]) == (["h100-a"], ["r01"], ["n0003"])
    assert labels["phase"] == ["seatrial", "production"]
    assert "spec" in labels
    assert [step["name"].split(" (")[0] for step in document["steps"]] == [
        "pcie_width 16 lanes", "pcie_generation 5 generation",
    ]  # fmt: skip
    assert [parameter["name"] for parameter in document["parameters"]] == ["subject"]
