"""`assay history --outcomes`, as people and machines read them."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.app import app
from assay.model.clock import SystemClock
from assay.model.errors import AssayError
from assay.validate.must_fail_recordings import read_check_recording
from tests.support.places import ROOT

NIC = "suites/production/test_nic.py::test_link"


@pytest.fixture
def fleet(tmp_path, reports, monkeypatch) -> Path:
    """This project's declarations, and history that is asked when it was made."""
    for part in ("inventory", "specs"):
        shutil.copytree(ROOT / part, tmp_path / part)
    monkeypatch.setattr(SystemClock, "now", lambda _: reports.asked().now)
    return tmp_path


@pytest.fixture
def ask(fleet):
    def asked(*words: str) -> str:
        result = CliRunner().invoke(app, ["history", *words, "--fleet", str(fleet)], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    return asked


@pytest.fixture
def past(reports, made_past):
    """Five days: a temperature that comes and goes, and a link that went down and came back."""
    shutil.copytree(made_past, reports.reports)


@pytest.fixture(scope="module")
def made_past(tmp_path_factory, reports_in, said) -> Path:
    """The reports of the past, from which each test has a copy."""
    reports = reports_in(tmp_path_factory.mktemp("past") / "reports")
    for days, (heat, link) in enumerate(["pp", "fp", "pf", "fp", "pp"]):
        words = {"p": "pass", "f": "fail"}
        many = [
            said(words[heat], node="n0003", value=60.0 + days, evidence=f"e{days}"),
            said(words[link], node="n0003", check=NIC),
            said(words[link], node="n0003", check=NIC.replace("link", "rate")),
        ]
        reports.kept(many, timedelta(days=days))
    return reports.reports


def test_a_line_says_when_which_check_failed_and_recovered(ask, past) -> None:
    gpu = "h100-a/n0003/gpu0"
    lines = ask("n0003", "--outcomes").splitlines()
    assert lines[:4] == [
        f"2026-11-18 20:00 UTC  fail  {gpu}  production/test_gpu.py::test_gpu_temperature  it is a fail",
        f"2026-11-19 20:00 UTC  pass  {gpu}  production/test_gpu.py::test_gpu_temperature  after 24 h",
        "2026-11-19 20:00 UTC  fail  h100-a/n0003       2 checks, 2 outcomes  it is a fail",
        f"2026-11-20 20:00 UTC  fail  {gpu}  production/test_gpu.py::test_gpu_temperature  it is a fail",
    ]
    flap = f"{gpu}  production/test_gpu.py::test_gpu_temperature  changed 4 times in the last 5 outcomes"
    assert f"flaky {flap}, last pass" in lines
    assert (
        lines[-1]
        == "n0003: 15 outcomes of 5 runs from 2026-11-17 20:00 UTC to 2026-11-21 20:00 UTC; at last nothing failed"
    )


def test_what_fails_still_is_counted_at_the_end(ask, reports, said) -> None:
    reports.kept([said("fail", node="n0003"), said("error", node="n0003", check=NIC)])
    assert ask("n0003", "--outcomes").splitlines()[-1] == (
        "n0003: 2 outcomes of 1 run at 2026-11-21 20:00 UTC; at last 1 failed, 1 could not be judged"
    )


def test_one_check_is_asked_for_as_people_write_it(ask, past) -> None:
    for word in ("link", "test_link", "production/test_nic.py::test_link", "*nic*link"):
        told = json.loads(ask("n0003", "--outcomes", "--check", word, "--format", "json"))
        assert {turn["check"] for turn in told["turns"]} == {NIC}


def test_machines_get_one_document(ask, past) -> None:
    told = json.loads(ask("n0003", "--outcomes", "--days", "2", "--format", "json"))
    assert {name: told[name] for name in ("node", "days", "runs", "outcomes")} == {
        "node": "n0003", "days": 2, "runs": 3, "outcomes": 9,
    }  # fmt: skip
    assert told["turns"][0].keys() >= {"run", "at", "check", "subject", "was", "verdict", "reason"}
    assert told["flapping"] == []


def test_without_a_node_the_flaky_checks_of_the_fleet_are_listed(ask, past) -> None:
    assert ask("--outcomes") == (
        "flaky h100-a/n0003/gpu0  production/test_gpu.py::test_gpu_temperature  "
        "changed 4 times in the last 5 outcomes, last pass\n"
    )
    told = json.loads(ask("--outcomes", "--format", "json"))
    assert [one["check"].rpartition("::")[2] for one in told["flapping"]] == ["test_gpu_temperature"]
    assert ask("--outcomes", "--days", "1") == "no check was flaky in the last 1 day\n"
    assert ask("--outcomes", "--check", "x") == "nothing was judged in the last 90 days by checks such as x\n"


def test_a_node_that_was_not_judged_is_said_and_one_that_does_not_exist_refused(ask, fleet) -> None:
    assert ask("n0003", "--outcomes") == "nothing was judged on n0003 in the last 90 days\n"
    assert ask("n0003", "--outcomes", "--check", "x") == (
        "nothing was judged on n0003 in the last 90 days by checks such as x\n"
    )
    with pytest.raises(AssayError, match="there is no node n00003"):
        ask("n00003", "--outcomes")


def test_a_node_must_be_named_where_one_is_meant(ask) -> None:
    with pytest.raises(AssayError, match="no node is given"):
        ask()


def test_history_in_the_way_is_a_warning_and_the_next_run_makes_good_for_it(fleet) -> None:
    shutil.copytree(ROOT / "suites", fleet / "suites", ignore=shutil.ignore_patterns("__pycache__"))
    latest = fleet / ".assay" / "evidence" / "latest"
    latest.mkdir(parents=True)
    (latest / "n0003.json").write_text(
        json.dumps({**read_check_recording(ROOT / "suites" / "recordings", "hgx-h100"), "node": "n0003"})
    )
    history = fleet / "reports" / "history"
    history.parent.mkdir()
    history.write_text("in the way")
    words = ["validate", "--node", "n0003", "--phase", "zap", "--fleet", str(fleet), "--", "-k", "bios"]
    first = CliRunner().invoke(app, words, catch_exceptions=False)
    assert first.exit_code == 0, first.output
    assert "history cannot be written" in first.stderr
    history.unlink()
    assert "history cannot" not in CliRunner().invoke(app, words, catch_exceptions=False).stderr
    runs = {folder.name for folder in (fleet / "reports" / "runs").iterdir()}
    assert {file.stem for file in history.glob("outcomes/*/*.parquet")} == runs
    assert len(runs) == 2
