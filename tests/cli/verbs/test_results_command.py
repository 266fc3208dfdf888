"""`assay results`, as an engineer, a CI job and a monitoring system call it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.app import load_verb
from assay.ledger.runs.writer import OutcomeWriter
from assay.model.errors import AssayError
from assay.model.outcome import Outcome, SuiteRun
from tests.support.places import SMALLEST

results_app = load_verb("results")

HEAT = "suites/production/test_heat.py::test_heat"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A fleet with three runs: all well, one fails, and the same with another failing."""
    (tmp_path / "inventory").mkdir()
    for number, failing in enumerate([(), ("n1",), ("n1", "n2")]):
        run = SuiteRun(f"2025112{number}T000000.000-aaaaaa", f"2025-11-2{number}T00:00:00+00:00", (), ("n1", "n2"))
        path = tmp_path / "reports" / "runs" / run.id / "run.sqlite"
        path.parent.mkdir(parents=True)
        writer = OutcomeWriter(path, run)
        for node in ("n1", "n2"):
            said = ("fail", f"{node} is hot") if node in failing else ("pass", "")
            writer(Outcome(HEAT, f"pool/{node}", node, *said))
        writer.set_about(ended="whole")
        writer.close()
    return tmp_path


@pytest.fixture
def results(root: Path):
    """Return exit code and output of the verb."""

    def call(*words: str):
        done = CliRunner().invoke(results_app, [*words, "--fleet", str(root)], catch_exceptions=False)
        return done.exit_code, done.stdout

    return call


def test_the_last_run_is_told_unless_another_is_named(results):
    code, out = results()
    assert (code, out.splitlines()[1]) == (1, "2 outcomes on 2 nodes: 2 failed")
    code, out = results("last~2")
    assert (code, out.splitlines()[1]) == (0, "2 outcomes on 2 nodes: 2 passed")
    assert results("20251121")[1].startswith("run 20251121T000000.000-aaaaaa")


def test_the_exit_code_is_of_what_was_chosen(results):
    assert results("last~1", "--node", "n2")[0] == 0
    assert results("last~1", "--node", "n1")[0] == 1
    assert results("--verdict", "skip")[0] == 0


def test_a_comparison_is_with_the_run_before_or_the_one_that_is_named(results):
    code, out = results("--compare")
    assert code == 1
    assert "2 outcomes in both: 1 newly failing, 1 still failing" in out
    assert "2 newly failing" in results("--against", "last~2")[1]
    code, out = results("last~2", "--against", "last")
    assert (code, out.splitlines()[2]) == (0, "2 outcomes in both: 2 fixed")
    assert results("--compare", "--node", "n1")[0] == 0
    assert json.loads(results("--compare", "--format", "json")[1])["counts"]["new_failure"] == 1


def test_runs_are_listed_newest_first(results):
    code, out = results("--list")
    assert code == 0
    assert [line[:8] for line in out.splitlines()] == ["20251122", "20251121", "20251120"]
    assert json.loads(results("--list", "--format", "json", "--most", "1")[1])["of"] == 3


@pytest.mark.parametrize("form", ["text", "json", "csv", "junit"])
def test_every_format_is_there(results, form):
    code, out = results("--format", form)
    assert (code, bool(out.strip())) == (1, True)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--node", "n3"], "the run judged no node n3"),
        (["--verdict", "failed"], "there is no verdict failed"),
        (["--phase", "zup"], "there is no phase zup"),
        (["--compare", "--format", "junit"], "--format junit is for one run"),
        (["--compare", "--verdict", "fail"], "--verdict is for one run"),
        (["--list", "--format", "junit"], "--list has no format junit"),
        (["last~2", "--compare"], "there is no run before"),
        (["last~7"], "there is no run last~7"),
    ],
)
def test_what_makes_no_sense_is_refused(results, words, what):
    with pytest.raises(AssayError) as refused:
        results(*words)
    assert refused.value.what.startswith(what)
    assert refused.value.fix


def test_a_rack_is_looked_up_in_the_inventory(results, root):
    (root / "inventory").rmdir()
    for folder in ("inventory", "specs"):
        (root / folder).symlink_to(SMALLEST / folder)
    assert results("--rack", "r1")[1].splitlines()[1].startswith("2 outcomes on 2 nodes")
    with pytest.raises(AssayError, match="there is no rack r9"):
        results("--rack", "r9")


def test_without_any_run_it_is_said_how_to_make_one(tmp_path):
    (tmp_path / "inventory").mkdir()
    for words in ([], ["--list"], ["--compare"]):
        with pytest.raises(AssayError) as refused:
            CliRunner().invoke(results_app, [*words, "--fleet", str(tmp_path)], catch_exceptions=False)
        assert refused.value.fix == "run `assay validate` first"
