"""`assay fabric evaluate`, as a person runs it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.app import app
from tests.support.places import ROOT
from tests.support.port_facts import plant_port_facts


@pytest.fixture(scope="module")
def home(a_week, tmp_path_factory) -> Path:
    """A fleet repository with ten scans of a fabric, one of whose modules is hot."""
    here = tmp_path_factory.mktemp("fleet")
    for folder in ("inventory", "specs", "suites"):
        shutil.copytree(ROOT / folder, here / folder)
    a_week.pass_by(lambda world, number: plant_port_facts(world, "n0004/mlx5_3", temperature_c=83.0), 10)
    shutil.copytree(a_week.store.folder, here / ".assay" / "evidence")
    return here


def run(home: Path, *arguments: str):
    return CliRunner().invoke(app, ["fabric", "evaluate", *arguments, "--fleet", str(home)])


def test_it_says_where_to_go_and_why(home):
    done = run(home)
    assert done.exit_code == 1, done.output
    assert "1. n0004 mlx5_3 port R3 (r01 U34), cable to leaf-su01-r3 port 2/2 (r06 U36)" in done.stdout
    assert "outlier: module temperature 83 °C, where " in done.stdout


def test_json_is_one_document(home):
    assert json.loads(run(home, "--format", "json").stdout)["scans"] == 10


def test_a_whole_week_is_kept_with_its_report_and_no_other_look_is(home):
    run(home, "--days", "1")
    week, page = home / ".assay/evidence/latest/week-compute.json", home / "reports/weekly/compute.txt"
    for file in (week, page):
        file.unlink(missing_ok=True)
    run(home, "--days", "1")
    assert not week.exists()
    assert not page.exists()
    run(home)
    assert json.loads(week.read_text())["channels"]["week"]["scans"] == {"value": 10}
    assert "n0004 mlx5_3" in page.read_text()


def validated(home: Path, *arguments: str):
    done = CliRunner().invoke(app, ["validate", "--fleet", str(home), "--format", "json", *arguments])
    return done, json.loads(done.stdout)


@pytest.mark.slow
def test_the_suite_of_a_week_looks_at_it_first_and_writes_the_report(home):
    (home / ".assay/evidence/latest/week-compute.json").unlink(missing_ok=True)
    (home / "reports/weekly/compute.txt").unlink(missing_ok=True)
    done, said = validated(home, "--phase", "weekly")
    assert done.exit_code == 1
    failed = {(one["check"].partition("::")[2], one["subject"]) for one in said["outcomes"] if one["verdict"] == "fail"}
    failed.discard(("test_no_day_goes_by_without_a_scan", "fabric/compute"))  # the scans are of a certain week
    assert failed == {("test_modules_are_no_hotter_than_their_peers", "h100-a/n0004/mlx5_3")}
    assert said["counts"]["error"] == 0
    assert "n0004 mlx5_3" in (home / "reports/weekly/compute.txt").read_text()


def test_where_no_phase_is_named_a_week_that_is_looked_at_already_is_left_as_it_is(home):
    page = home / "reports/weekly/compute.txt"
    run(home)
    page.unlink()
    validated(home, "--node", "n0001")
    assert not page.exists()


def test_a_fabric_that_was_never_scanned_is_an_error_of_every_weekly_check(home, tmp_path):
    for folder in ("inventory", "specs", "suites"):
        shutil.copytree(home / folder, tmp_path / folder)
    done, said = validated(tmp_path, "--phase", "weekly", "--node", "n0001")
    assert done.exit_code == 1
    assert {one["verdict"] for one in said["outcomes"]} == {"error"}
    assert "run `assay fabric evaluate compute`" in said["outcomes"][0]["reason"]


def test_a_fabric_that_was_never_scanned_is_told_what_to_run(home, tmp_path):
    shutil.copytree(home / "inventory", tmp_path / "inventory")
    shutil.copytree(home / "specs", tmp_path / "specs")
    done = run(tmp_path)
    assert isinstance(done.exception, Exception)
    assert "never scanned" in str(done.exception)
