"""Every check of a week passes on the recorded week, and fails on what must make it fail."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

import assay.validate.items.suite_hooks  # noqa: F401 — once for all sessions below
from assay.declare.loader import load_fleet
from assay.ledger.runs.reader import StoredRun
from assay.model.outcome import Outcome
from assay.validate.must_fail_recordings import apply_case, read_check_recording, read_must_fail_cases
from tests.support.places import ROOT

pytest_plugins = ["pytester"]

RECORDINGS = ROOT / "suites" / "recordings"
CHECKS = {
    check.id: check
    for catalogue in load_fleet(ROOT).check_catalogs.values()
    for check in catalogue.checks
    if check.phases == ["weekly"]
}
CASES = [
    (check, case) for check, cases in read_must_fail_cases(RECORDINGS).items() if check in CHECKS for case in cases
]


def test_every_check_passes_on_the_recorded_week(pytester, home):
    write(home, read_check_recording(RECORDINGS, "week-compute"))
    outcomes = judge(pytester, home, "suites/weekly")
    assert {outcome.check for outcome in outcomes} == set(CHECKS)
    assert [outcome for outcome in outcomes if outcome.verdict != "pass"] == []
    links, switches, fabrics = 20 * 8, 8 + 4, 1
    assert len(outcomes) == 7 * links + 7 * switches + 1 * fabrics


def test_a_week_that_was_never_looked_at_is_an_error_and_says_what_to_run(pytester, home):
    assert judge(pytester, home, "suites/weekly") == [], "without a phase, nothing of it is due"
    outcomes = judge(pytester, home, "suites/weekly", "--assay-phase=weekly")
    assert {outcome.verdict for outcome in outcomes} == {"error"}
    assert {outcome.check for outcome in outcomes} == set(CHECKS)
    told = {outcome.reason for outcome in outcomes}
    assert told == {"there is no week of fabric compute; run `assay fabric evaluate compute`"}


def test_the_other_ports_are_left_in_peace(pytester, home):
    check = "suites/weekly/test_links.py::test_modules_are_no_hotter_than_their_peers"
    case = next(case for name, case in CASES if name == check)
    write(home, apply_case(read_check_recording(RECORDINGS, "week-compute"), case))
    failed = {one.subject for one in judge(pytester, home, check) if one.verdict != "pass"}
    assert failed == {"h100-a/n0003/mlx5_0"}


def test_what_too_few_scans_read_is_an_error_and_what_enough_read_is_judged(pytester, home):
    document = read_check_recording(RECORDINGS, "week-compute")
    week = document["channels"]["week"]
    week["read_scans"] = {
        "value": {"counters": 28, "temperature": 28, "light": 3, "bias": 28, "ber_power": 28, "fec_bin": 28}
    }
    week["growth_scans"], week["answered_scans"] = {"value": 27}, {"value": 3}
    write(home, document)
    verdicts = {}
    for outcome in judge(pytester, home, "suites/weekly/test_links.py"):
        verdicts.setdefault(outcome.verdict, set()).add(outcome.check.partition("::")[2])
        assert outcome.verdict == "pass" or "3 of 28 scans read it, 8 are needed" in outcome.reason
    assert verdicts["error"] == {"test_light_is_that_of_its_peers", "test_nothing_creeps"}
    assert "test_link_does_not_flap" in verdicts["pass"]


@pytest.fixture(autouse=True)
def _nothing_else_that_is_installed(monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The fleet without evidence."""
    for folder in ("inventory", "specs", "suites"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def write(home: Path, document: dict) -> None:
    path = home / ".assay" / "evidence" / "latest" / "week-compute.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(document))


def judge(pytester, home: Path, where: str, *options: str) -> Sequence[Outcome]:
    """Run real pytest over suites and return what it wrote down."""
    written = home / "own.sqlite"
    written.unlink(missing_ok=True)
    pytester.chdir()
    pytester.inline_run(
        str(home / where),
        *options,
        f"--rootdir={home}",
        "--import-mode=importlib",
        "-qs",
        "-p",
        "no:cacheprovider",
        "-p",
        "assay.validate.plugin",
        f"--assay-store={written}",
    )
    with StoredRun.open(written) as stored:
        return list(stored.outcomes())
