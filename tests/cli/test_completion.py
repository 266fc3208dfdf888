"""A shell completes verbs, and names of the fleet where a command wants one, and is told of no error."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.app import app
from assay.ledger.runs.writer import OutcomeWriter
from assay.model.outcome import Outcome, SuiteRun
from tests.support.places import ROOT

RUN = SuiteRun("20251120T000000.000-aaaaaa", "2025-11-20T00:00:00+00:00", (), ("n1",))


def complete(*words: str, fleet: Path = ROOT) -> list[str]:
    """Return what bash offers for the last of these words."""
    line = {"COMP_WORDS": " ".join(("assay", *words)), "COMP_CWORD": str(len(words)), "ASSAY_FLEET": str(fleet)}
    answer = CliRunner().invoke(app, [], prog_name="assay", env={**line, "_ASSAY_COMPLETE": "complete_bash"})
    assert (answer.exit_code, answer.stderr) == (0, "")
    return answer.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["reco"], ["reconcile"]),
        (["explain", "n000"], [f"n000{number}" for number in range(1, 10)]),
        (["hold", "n0001", "n002"], ["n0020"]),
        (["validate", "--pool", ""], ["byo-b", "h100-a"]),
        (["explain", "--la"], ["--last"]),
        (["explain", "zz"], []),
        (["schema", "roll"], ["rollout"]),
        (["schema", "ledger", "ver"], ["verify"]),
    ],
    ids="-".join,
)
def test_names_are_completed(words: list[str], offered: list[str]) -> None:
    assert complete(*words) == offered


def test_checks_are_those_of_the_last_run(tmp_path: Path) -> None:
    file = tmp_path / "reports" / "runs" / RUN.id / "run.sqlite"
    file.parent.mkdir(parents=True)
    (tmp_path / "inventory").mkdir()
    writer = OutcomeWriter(file, RUN)
    writer(Outcome("suites/production/test_heat.py::test_heat_of_node", "pool/n1", "n1", "pass", ""))
    writer.set_about(ended="whole")
    writer.close()
    assert complete("results", "--check", "test_h", fleet=tmp_path) == ["test_heat_of_node"]
    assert complete("results", "2025", fleet=tmp_path) == [RUN.id]


def test_where_there_is_no_fleet_nothing_is_completed(tmp_path: Path) -> None:
    assert complete("explain", "n", fleet=tmp_path) == []
    assert complete("results", "--check", "test", fleet=tmp_path) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_printed(shell: str) -> None:
    answer = CliRunner().invoke(app, [], prog_name="assay", env={"_ASSAY_COMPLETE": f"source_{shell}"})
    assert f"complete_{shell}" in answer.stdout
