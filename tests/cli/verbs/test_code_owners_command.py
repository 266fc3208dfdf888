"""`assay specs codeowners`: the forge asks the owner of a spec to review its change."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.verbs.specs import specs_app
from assay.declare.check import check_repository
from assay.model.errors import AssayError
from tests.support.places import ROOT

OWNERS = """kind: CodeOwners
name: owners
owner: fleet
teams: {fleet: ["@us/fleet"], hall: ["@us/hall", ann@us.example]}
paths: {/: fleet, /inventory/: hall, /firmware/: nobody}
"""
ISSUES = "kind: KnownIssues\nname: {0}\nowner: {0}\nissues: []\n"


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    (tmp_path / "inventory").mkdir()
    for name in ("fleet", "hall", "nobody"):
        (tmp_path / "specs" / f"of {name}.yaml").parent.mkdir(exist_ok=True)
        (tmp_path / "specs" / f"of {name}.yaml").write_text(ISSUES.format(name))
    (tmp_path / "specs" / "owners.yaml").write_text(OWNERS)
    return tmp_path


def run(fleet: Path, *words: str) -> tuple[int, str]:
    result = CliRunner().invoke(specs_app, ["codeowners", *words, "--fleet", str(fleet)])
    if isinstance(result.exception, AssayError):
        return 2, str(result.exception)
    return result.exit_code, result.stdout


def test_the_last_line_that_fits_is_that_of_the_specs_owner(fleet: Path) -> None:
    assert run(fleet) == (0, "CODEOWNERS: 6 lines\n")
    assert (fleet / "CODEOWNERS").read_text().splitlines()[1:] == [
        "* @us/fleet",
        "/inventory/ @us/hall ann@us.example",
        r"/specs/of\ fleet.yaml @us/fleet",
        r"/specs/of\ hall.yaml @us/hall ann@us.example",
        "/specs/owners.yaml @us/fleet",
        "/CODEOWNERS @us/fleet",
    ]
    assert run(fleet, "--check") == (0, "CODEOWNERS is current\n")


def test_check_tells_an_old_file_and_a_missing_one_and_writes_nothing(fleet: Path) -> None:
    assert run(fleet, "--check")[0] == 1
    assert not (fleet / "CODEOWNERS").exists()
    run(fleet)
    (fleet / "specs" / "of hall.yaml").write_text(ISSUES.format("fleet"))
    old = (fleet / "CODEOWNERS").read_text()
    assert run(fleet, "--check")[0] == 1
    assert (fleet / "CODEOWNERS").read_text() == old
    assert "ASY0262" in [problem.code for problem in check_repository(fleet).problems]


def test_a_file_that_github_reads_instead_is_told(fleet: Path) -> None:
    run(fleet)
    (fleet / ".github").mkdir()
    (fleet / ".github" / "CODEOWNERS").touch()
    found = [problem for problem in check_repository(fleet).problems if problem.code == "ASY0262"]
    assert [(problem.file, problem.fix) for problem in found] == [(".github/CODEOWNERS", "remove it")]


def test_owners_without_a_team_are_told_at_their_lines(fleet: Path) -> None:
    found = [problem for problem in check_repository(fleet).problems if problem.code == "ASY0261"]
    assert [problem.where for problem in found] == ["specs/of nobody.yaml:3:1", "specs/owners.yaml:5:38"]


def test_without_a_map_there_is_nothing_to_write_or_to_check(fleet: Path) -> None:
    (fleet / "specs" / "owners.yaml").unlink()
    assert run(fleet)[0] == 2
    assert run(fleet, "--check") == (0, "no spec maps owners to teams: there is nothing to check\n")


def test_a_spec_that_cannot_be_read_is_told_and_nothing_is_written(fleet: Path) -> None:
    run(fleet)
    current = (fleet / "CODEOWNERS").read_text()
    (fleet / "specs" / "of hall.yaml").write_text("kind: KnownIssues\nname: hall\nodd: 1\n")
    status, said = run(fleet)
    assert (status, "odd is not known here" in said) == (2, True)
    assert (fleet / "CODEOWNERS").read_text() == current
    assert "ASY0262" not in [problem.code for problem in check_repository(fleet).problems], "it may be right"


def test_this_repositorys_own_file_is_current() -> None:
    assert run(ROOT, "--check") == (0, "CODEOWNERS is current\n")
