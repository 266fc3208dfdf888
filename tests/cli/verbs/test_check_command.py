"""`assay check`: its output in each format, and its exit codes."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.app import load_verb
from assay.cli.verbs import check as verb
from assay.declare.check import CheckReport
from assay.declare.problems import FleetProblem
from tests.support.forked_assay import run_assay
from tests.support.places import SMALLEST


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
        "context": "fleet",
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


def _add_nodes(root: Path, count: int, guid: str) -> None:
    """Give the fleet's nodes `count` neighbours, each with a list of one GUID."""
    node = "node_spec: small, profile: managed, site: lab, u: 1"
    lines = [
        f'    h{at:04}: {{{node}, rack: "r{at}", serial_number: "T{at}", hca_guids:\n      ["{guid}"]}}\n'
        for at in range(count)
    ]
    (root / "inventory" / "more.yml").write_text("pool-b:\n  hosts:\n" + "".join(lines))


def test_alike_problems_are_one_with_their_number_and_places(broken: Path) -> None:
    _add_nodes(broken, 841, "0xa088c203009a01066")
    lines = _assay("--fleet", str(broken)).stdout.splitlines()
    assert len(lines) == 6
    assert lines[0].startswith("inventory/more.yml:4:8: error ASY0012: h0000: hca_guids.0: ")
    assert lines[2] == (
        "  and 840 more like this: inventory/more.yml:6, inventory/more.yml:8, inventory/more.yml:10 …;"
        " 840 in inventory/more.yml (`--format json` lists all)"
    )
    assert lines[3].startswith("inventory/pool.yml:5:76: error ASY0033")
    assert lines[-1].endswith(": 842 problems")


def test_json_keeps_every_alike_problem(broken: Path) -> None:
    _add_nodes(broken, 841, "0xa088c203009a01066")
    assert len(json.loads(_assay("--fleet", str(broken), "--format", "json").stdout)["problems"]) == 842


def test_github_gets_one_annotation_of_alike_problems_and_a_bounded_number(broken: Path) -> None:
    _add_nodes(broken, 60, "0xa088c203009a01066")
    told = _assay("--fleet", str(broken), "--format", "github").stdout.splitlines()
    assert len([line for line in told if line.startswith("::")]) == 2
    assert "and 59 more like this" in told[0]


def test_github_gets_at_most_fifty_annotations_and_the_number_of_the_others() -> None:
    names = [f"{one}{other}" for one in "abcdefgh" for other in "abcdefgh"]
    problems = [FleetProblem("a.yaml", 1, 1, "ASY0001", "error", f"{name} is wrong") for name in names]
    told = verb.format_check_github(CheckReport(problems, 1, 1)).splitlines()
    assert len(told) == 52
    assert told[-2:] == ["14 problems more: `assay check` lists them", "1 node, 1 spec: 64 problems"]


def test_a_few_alike_problems_are_listed_one_by_one(broken: Path) -> None:
    _add_nodes(broken, 3, "0xa088c203009a01066")
    told = _assay("--fleet", str(broken)).stdout
    assert told.count("ASY0012") == 3
    assert "more like this" not in told


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
    (tmp_path / "inventory").mkdir()
    result = CliRunner().invoke(load_verb("check"), ["--fleet", str(tmp_path)])
    assert result.exit_code == 1
    assert "ASY0011: there is no inventory/: this is no fleet repository" in result.stdout


def _assay(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_assay("check", *arguments)
