"""`assay fabric evaluate`, as a person runs it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.app import app
from assay.lab.port_facts import plant

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def home(a_week, tmp_path_factory) -> Path:
    """A fleet repository with three scans of a fabric, one of whose modules is hot."""
    here = tmp_path_factory.mktemp("fleet")
    for folder in ("inventory", "specs", "suites"):
        shutil.copytree(ROOT / folder, here / folder)
    a_week.pass_by(lambda world, number: plant(world, "n0004/mlx5_3", temperature_c=83.0), 3)
    shutil.copytree(a_week.store.folder, here / ".assay" / "evidence")
    return here


def run(home: Path, *arguments: str):
    return CliRunner().invoke(app, ["fabric", "evaluate", *arguments, "--fleet", str(home)])


def test_it_says_where_to_go_and_why(home):
    done = run(home)
    assert done.exit_code == 1, done.output
    assert "1. n0004 mlx5_3 port R3 (r01 U34), cable to leaf-su01-r3 port 2/2 (r06 U36)" in done.stdout
    assert "limit: module temperature 83 °C, above the limit of 75" in done.stdout


def test_json_is_one_document_and_html_one_page(home):
    assert json.loads(run(home, "--format", "json").stdout)["scans"] == 3
    assert run(home, "compute", "--format", "html", "--days", "1").stdout.startswith("<!doctype html>")


def test_a_fabric_that_was_never_scanned_is_told_what_to_run(home, tmp_path):
    shutil.copytree(home / "inventory", tmp_path / "inventory")
    shutil.copytree(home / "specs", tmp_path / "specs")
    done = run(tmp_path)
    assert isinstance(done.exception, Exception)
    assert "never scanned" in str(done.exception)
