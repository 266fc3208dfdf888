"""`assay check`: its output in each format, and its exit codes."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from forked_assay import run_assay
from typer.testing import CliRunner

from assay.cli.verbs.declare import check as verb

ROOT = Path(__file__).parents[2]
SMALLEST = ROOT / "tests" / "fleet" / "smallest"


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A fleet with two nodes in one place, and a message with signs that GitHub must see escaped."""
    root = tmp_path / "fleet"
    shutil.copytree(SMALLEST, root, ignore=shutil.ignore_patterns("__pycache__"))
    pool = root / "inventory" / "pool.yml"
    pool.write_text(pool.read_text().replace("u: 2", "u: 1").replace("rack: r1", 'rack: "100%, r:1"'))
    return root


def test_a_fleet_without_problems_is_one_calm_line() -> None:
    run = _assay("--fleet", str(SMALLEST))
    assert (run.returncode, run.stdout, run.stderr) == (0, "2 nodes, 6 specs: no problems\n", "")


def test_each_problem_is_told_with_its_place_its_code_and_its_fix(broken: Path) -> None:
    run = _assay("--fleet", str(broken))
    assert run.returncode == 1
    assert run.stdout.splitlines() == [
        "inventory/pool.yml:5:76: error ASY0033: n2: place lab 100%, r:1 U1 is given by n1 too",
        "  → correct one of the two",
        "2 nodes, 6 specs: 1 problem",
    ]


def test_json_is_one_document_and_nothing_else(broken: Path) -> None:
    run = _assay("--fleet", str(broken), "--format", "json")
    assert run.returncode == 1
    assert json.loads(run.stdout) == {
        "problems": [
            {
                "file": "inventory/pool.yml",
                "line": 5,
                "column": 76,
                "code": "ASY0033",
                "severity": "error",
                "message": "n2: place lab 100%, r:1 U1 is given by n1 too",
                "fix": "correct one of the two",
            }
        ],
        "nodes": 2,
    }


def test_github_gets_annotations_that_it_can_parse(broken: Path) -> None:
    run = _assay("--fleet", str(broken), "--format", "github")
    assert run.returncode == 1
    assert run.stdout.splitlines()[0] == (
        "::error file=inventory/pool.yml,line=5,col=76,title=ASY0033::"
        "n2: place lab 100%25, r:1 U1 is given by n1 too%0A→ correct one of the two"
    )


def test_a_file_name_with_a_comma_is_escaped_in_an_annotation(broken: Path) -> None:
    (broken / "specs" / "a,b:c.yaml").write_text("kind: Nothing\n")
    assert "::error file=specs/a%2Cb%3Ac.yaml,line=1," in _assay("--fleet", str(broken), "--format", "github").stdout


def test_a_code_explains_itself() -> None:
    run = _assay("--explain", "asy0033")
    assert run.returncode == 0
    assert run.stdout.startswith("ASY0033 (error): two nodes stand in the same place\n  ")


def test_a_code_that_does_not_exist_and_a_folder_that_is_not_there_end_with_2() -> None:
    unknown, missing = _assay("--explain", "ASY9999"), _assay("--fleet", "/no/such/folder")
    assert (unknown.returncode, missing.returncode) == (2, 2)
    assert unknown.stderr.startswith("assay: there is no rule ASY9999")
    assert missing.stderr.startswith("assay: there is no folder /no/such/folder")
    assert "Traceback" not in unknown.stderr + missing.stderr


def test_a_folder_that_is_no_fleet_is_a_problem_and_no_crash(tmp_path: Path) -> None:
    result = CliRunner().invoke(verb.check_app, ["--fleet", str(tmp_path)])
    assert result.exit_code == 1
    assert "ASY0011: there is no inventory/: this is no fleet repository" in result.stdout


def _assay(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_assay("check", *arguments)
