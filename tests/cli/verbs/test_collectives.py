"""`assay collectives`: who is free, a search on this machine, and its report, with the exit codes that scripts need."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from assay.adapters.scheduler import CustomerJob, NoScheduler, SchedulerNodeStatus
from assay.cli.verbs import collectives
from assay.cli.verbs.collectives import collectives_app
from assay.model.errors import AssayError
from assay.model.specs.workload import CollectiveWorkload
from tests.support.places import ROOT

JOB = CustomerJob("17", "llama", "ada", "2026-11-20T00:00:00+00:00")


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """The example fleet: 20 nodes under the leaves of one unit, 8 rails; without a ledger."""
    for folder in ("inventory", "specs", "suites"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    return tmp_path


def call(fleet: Path, *words: str) -> Result:
    return CliRunner().invoke(collectives_app, [*words, "--fleet", str(fleet)], catch_exceptions=False)


class BusyScheduler(NoScheduler):
    """A scheduler that runs a job on one node, has closed another, and does not know a third."""

    def read_statuses(self, nodes):
        free = dict.fromkeys(super().read_statuses(nodes), SchedulerNodeStatus())
        free["n0003"] = SchedulerNodeStatus((JOB,))
        free["n0004"] = SchedulerNodeStatus(cordon="bad fan")
        del free["n0005"]
        return free


def test_a_search_says_who_is_free_and_why_the_others_are_not(fleet: Path, monkeypatch) -> None:
    monkeypatch.setattr(collectives, "load_scheduler_adapter", lambda node: BusyScheduler(node.settings))
    plan = json.loads(call(fleet, "plan", "--format", "json").stdout)
    assert (len(plan["free"]), [len(one["pairs"]) for one in plan["rounds"]]) == (17, [8, 8, 8])
    assert call(fleet, "plan").stdout.splitlines() == [
        "17 of 20 nodes are free",
        "not free: n0003: in use: job 17 (llama, ada)",
        "not free: n0004: cordoned: bad fan",
        "not free: n0005: cannot tell whether it is in use: its scheduler does not know it",
        "rounds: M1 8 pairs, M2 8 pairs, M3 8 pairs; more where a pair is bad",
    ]
    assert "no pair can run: that needs two free nodes" in call(fleet, "plan", "n0001").stdout


def test_a_search_names_the_planted_and_explain_says_the_same(fleet: Path, tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    nodes = [f"n{at:04}" for at in range(1, 9)]
    words = ["run", str(file), *nodes, "--cpu", "--plant", "n0003=wrong", "--at-once", "4", "--format", "json"]
    result = call(fleet, *words)
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert [(one["kind"], one["name"], one["symptom"]) for one in report["named"]] == [("node", "n0003", "wrong")]
    assert report["coverage"]["uplinks"] == {"exercised": 0, "reachable": 0, "total": 256}
    said = call(fleet, "explain", str(file), "--format", "json")
    assert (said.exit_code, json.loads(said.stdout)) == (1, report)
    again = call(fleet, *words)
    assert json.loads(again.stdout) == report, "nothing is left to run"


def test_results_of_other_tools_are_explained_without_a_fleet(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    pairs = [("M1", "ab"), ("M1", "cd"), ("M1", "ef"), ("M2", "ac"), ("M2", "bd"), ("M3", "ad"), ("M3", "bc")]
    lines = [{"round": name, "pair": list(pair), "seconds": 1.0, "wrong": 0, "ended": "ok"} for name, pair in pairs]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = call(tmp_path, "explain", str(file))
    assert result.exit_code == 0
    assert "7 pairs in 3 rounds: nobody named" in result.stdout


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["run", "r.jsonl"], "nothing says how to run a collective"),
        (
            ["run", "r.jsonl", "--workload", "nccl-srun", "--allocated", "n0001", "n0002", "--plant", "n0001=slow"],
            "this machine only",
        ),
        (["run", "r.jsonl", "--workload", "virtul"], "no CollectiveWorkload is called virtul"),
        (["run", "r.jsonl", "--cpu", "--plant", "n0001=tired"], "plants no fault"),
        (["run", "r.jsonl", "--cpu", "--plant", "n9999=slow"], "no node in this search called n9999"),
        (["run", "r.jsonl", "--cpu", "--scratch", "/none"], "there is no folder /none"),
        (["run", "/", "--cpu"], "this is a folder"),
        (["explain", "/dev/null"], "no result in it"),
        (["run", "r.jsonl", "--cpu", "n9999"], "no node of this fabric n9999"),
        (["run", "r.jsonl", "--cpu", "n0001"], "two free nodes"),
        (["run", "r.jsonl", "--workload", "nccl-srun", "--allocated"], "which nodes"),
        (["explain", "/none.jsonl"], "cannot be read"),
        (["run", "r.jsonl", "--cpu", "--design", "none"], "no FabricDesign"),
        (["run", "r.jsonl", "--cpu", "--routes", "/none"], "none: cannot be read"),
    ],
)
def test_what_cannot_be_done_is_an_error_that_says_why(fleet: Path, words: list[str], error: str) -> None:
    with pytest.raises(AssayError, match=error):
        call(fleet, *words)


def test_results_of_another_fabric_are_refused(fleet: Path, tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text('{"round": "M1", "pair": ["x", "y"], "ended": "ok"}\n')
    with pytest.raises(AssayError, match="x is no node of this fabric"):
        call(fleet, "explain", str(file))


def test_a_search_does_not_continue_on_a_node_that_is_in_use(fleet: Path, tmp_path: Path, monkeypatch) -> None:
    file = tmp_path / "results.jsonl"
    pair = {"command": ["/bin/false", "{a}", "{b}"], "deadline_seconds": 5}
    workload = CollectiveWorkload(kind="CollectiveWorkload", name="false", sources=["us"], pair=pair)
    monkeypatch.setattr(collectives, "choose_workload", lambda *_: workload)
    command = ["--workload", "false"]
    assert call(fleet, "run", str(file), "n0001", "n0003", "--allocated", *command).exit_code == 0
    monkeypatch.setattr(collectives, "load_scheduler_adapter", lambda node: BusyScheduler(node.settings))
    with pytest.raises(AssayError, match=r"n0003 is not free: in use: job 17"):
        call(fleet, "run", str(file), *command)
