"""`assay plan` as it is typed: what it prints, how it ends, and that it leaves nothing behind."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assay.decide.state import decision_and_fault_entries
from assay.ledger.store import Ledger
from assay.model.outcome import Measurement, Outcome, SuiteRun
from tests.support.forked_assay import run_assay

HEAT = "suites/production/test_gpu.py::test_gpu_temperature"


def assay_plan(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_assay("plan", "--fleet", root, *words)


def test_nothing_changes_in_one_line(repository) -> None:
    run = assay_plan(repository.root, "--base", "main")
    assert (run.returncode, run.stdout, run.stderr) == (0, "main → the working tree: nothing changes\n", "")


def test_two_commits_are_compared_whatever_lies_in_the_folder(repository) -> None:
    first = repository.git("rev-parse", "HEAD")
    repository.spec("fans: 10", "fans: 9").commit()
    repository.edit("inventory/h100-a.yml", "hosts:", "hosts: [")
    run = assay_plan(repository.root, "--base", first, "--head", "main", "--format", "json")
    assert run.returncode == 0, run.stderr
    assert [one["field"] for one in json.loads(run.stdout)["configuration"]] == ["fans"]


def test_a_plan_that_breaks_a_limit_ends_with_1_and_says_which(repository) -> None:
    repository.remove(*(f"n{number:04}" for number in range(5, 13)))
    run = assay_plan(repository.root, "--base", "main", "--format", "json")
    assert run.returncode == 1, run.stderr
    assert "limits.pool_percent" in {one["limit"] for one in json.loads(run.stdout)["refused"]}


def test_markdown_is_what_the_comment_will_be(repository) -> None:
    run = assay_plan(repository.root, "--base", "main", "--format", "markdown")
    assert run.stdout.startswith("<!-- assay plan -->\n### assay plan: nothing changes\n")


@pytest.mark.parametrize("word", ["nowhere", "--upload-pack=x", "HEAD:specs"])
def test_a_revision_that_git_does_not_know_ends_with_2(repository, word) -> None:
    run = assay_plan(repository.root, f"--base={word}")
    assert (run.returncode, run.stdout) == (2, "")
    assert f"git knows no revision {word}" in run.stderr


def test_a_head_with_mistakes_is_told_with_the_first_of_them(repository) -> None:
    repository.edit("inventory/h100-a.yml", "u: 24", "u: high", 1)
    run = assay_plan(repository.root, "--base", "main")
    assert run.returncode == 2
    assert "the working tree cannot be read" in run.stderr
    assert "inventory/h100-a.yml:" in run.stderr


def test_a_base_with_mistakes_gets_the_plan_of_its_repair_and_names_the_first_of_them(repository) -> None:
    repository.edit("inventory/h100-a.yml", "u: 24", "u: high", 1).commit()
    repository.edit("inventory/h100-a.yml", "u: high", "u: 24")
    run = assay_plan(repository.root, "--base", "main")
    assert (run.returncode, run.stderr) == (0, "")
    assert "the base cannot be read (inventory/h100-a.yml:" in run.stdout


def test_a_name_that_leads_nowhere_is_told_and_no_crash(repository) -> None:
    repository.spec("firmware: hgx-h100-2026-10", "firmware: hgx-h100-2027-01")
    run = assay_plan(repository.root, "--base", "main")
    assert run.returncode == 2
    assert "the working tree: hgx-h100 names the FirmwareBundle hgx-h100-2027-01, which does not exist" in run.stderr
    assert "mistake of assay" not in run.stderr


def test_a_folder_that_is_no_git_repository_ends_with_2(repository, tmp_path) -> None:
    (repository.root / ".git").rename(tmp_path / "elsewhere")
    run = assay_plan(repository.root, "--base", "main")
    assert run.returncode == 2
    assert "Traceback" not in run.stderr


def test_a_folder_that_is_not_there_ends_with_2(tmp_path) -> None:
    run = assay_plan(tmp_path / "nowhere", "--base", "main")
    assert (run.returncode, run.stderr.partition("\n")[0]) == (2, f"assay: there is no folder {tmp_path / 'nowhere'}")


def test_planning_leaves_no_trace(repository) -> None:
    repository.spec("gpu_temperature: {value: 85", "gpu_temperature: {value: 84")
    before = repository.git("status", "--porcelain", "--ignored")
    assay_plan(repository.root, "--base", "main")
    assert repository.git("status", "--porcelain", "--ignored") == before


def test_with_a_ledger_at_hand_history_is_asked(repository) -> None:
    now = datetime.now(UTC)
    (repository.root / ".assay").mkdir()
    ledger = Ledger.open(repository.root / ".assay/ledger.sqlite")
    ledger.append(
        *(
            decision_and_fault_entries.make_enrolled_entry(f"n{n:04}", "h100-a", "production", now - timedelta(days=9))
            for n in range(3, 17)
        )
    )
    at = (now - timedelta(days=2)).isoformat()
    number = Measurement("gpu_temperature", 84.5, "°C", None, 85.0, "specs/nodes/hgx-h100.yaml:1")
    outcome = Outcome(
        HEAT, "h100-a/n0005/gpu0", "n0005", "pass", "", "gpu.thermal", ("test", "production"),
        evidence="e", evidence_at=at, measurements=(number,),
    )  # fmt: skip
    ledger.record(SuiteRun("r1", at), [outcome])
    ledger.close()
    repository.spec("gpu_temperature: {value: 85", "gpu_temperature: {value: 84")
    run = assay_plan(repository.root, "--base", "main", "--format", "json")
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)["backtest"]
    assert (round(told["days"]), told["measurements"], told["unmapped"]) == (9, 1, 0)
    assert [(one["node"], one["acts"], one["still"]) for one in told["found"]] == [("n0005", True, True)]
    assert "would have acted where the base did not: n0005" in assay_plan(repository.root, "--base", "main").stdout
