"""A damaged run or history file is named and skipped; no verb ends with a mistake of its own over one."""

from __future__ import annotations

import random
import shutil
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.app import app
from assay.ledger.history.append import append_missing_runs
from assay.ledger.runs.reader import StoredRun
from assay.ledger.runs.writer import OutcomeWriter
from assay.model.errors import AssayError
from assay.model.outcome import Outcome, SuiteRun
from tests.support.places import ROOT

NOW = datetime.now(UTC)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A fleet with three runs of 2,000 outcomes each."""
    for folder in ("inventory", "specs", "suites"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    for days in (3, 2, 1):
        when = NOW - timedelta(days=days)
        run = SuiteRun(f"{when:%Y%m%dT%H%M%S}.000-abcde{days}", when.isoformat(), nodes=("n0003", "n0004"))
        file = tmp_path / "reports" / "runs" / run.id / "run.sqlite"
        file.parent.mkdir(parents=True)
        writer = OutcomeWriter(file, run, {"ended": "whole"})
        for number in range(2000):
            node = f"n000{3 + number % 2}"
            verdict, reason = ("fail", f"too hot: {number * 7919} of {number}") if number % 3 else ("pass", "")
            writer(Outcome(f"suites/a.py::test_{number}", f"h100-a/{node}", node, verdict, reason))
        writer.close()
    return tmp_path


def runs(home: Path) -> list[Path]:
    return sorted((home / "reports" / "runs").glob("*/run.sqlite"))


def command(home: Path, *words: str):
    return CliRunner().invoke(app, [*words, "--fleet", str(home)])


def overwrite(file: Path, at: float = 0.5, count: int = 6000) -> None:
    """Overwrite bytes in the middle of a file."""
    content = bytearray(file.read_bytes())
    start = int(len(content) * at)
    content[start : start + count] = random.Random(7).randbytes(len(content[start : start + count]))
    file.write_bytes(content)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


@pytest.mark.parametrize("damage", [overwrite, cut, lambda file: file.write_bytes(b"no database")])
def test_a_damaged_run_is_named_and_the_others_are_listed_compared_and_added_to_history(home, damage):
    first, middle, last = runs(home)
    damage(middle)
    done = command(home, "results", "--list")
    assert done.exit_code == 0
    assert (first.parent.name in done.stdout, last.parent.name in done.stdout) == (True, True)
    assert f"left out: {middle}" in done.stderr
    done = command(home, "results", "--compare")
    assert done.exit_code == 0
    assert f"against {first.parent.name}" in done.stdout
    assert f"left out: {middle}" in done.stderr
    (problem,) = append_missing_runs(home / "reports")
    assert str(middle) in str(problem)


@pytest.mark.parametrize("words", [["results"], ["results", "--compare"], ["gate"], ["rejudge", "last"]])
def test_a_verb_that_needs_the_damaged_run_names_it(home, words):
    overwrite(runs(home)[-1])
    done = command(home, *words)
    assert isinstance(done.exception, AssayError)
    assert str(runs(home)[-1]) in str(done.exception)
    assert "damaged" in str(done.exception) or "no run that can be read" in str(done.exception)


def test_whatever_bytes_are_overwritten_a_run_is_read_whole_or_refused(home, tmp_path):
    whole = runs(home)[0]
    for number in range(60):
        damaged = tmp_path / "damaged.sqlite"
        shutil.copyfile(whole, damaged)
        dice = random.Random(number)
        overwrite(damaged, dice.random(), dice.choice((1, 30, 600, 5000)))
        with suppress(AssayError), StoredRun.open_whole(damaged) as stored:
            assert len(list(stored.outcomes())) > 0


def test_a_damaged_file_of_history_is_named_and_the_others_are_read(home):
    assert append_missing_runs(home / "reports") == []
    files = sorted((home / "reports" / "history" / "outcomes").glob("*/*.parquet"))
    overwrite(files[0], 0.3, 200)
    cut(files[1])
    done = command(home, "history", "--outcomes", "n0003", "--days", "9")
    assert done.exit_code == 0, done.exception
    assert [str(file) in done.stderr for file in files] == [True, True, False]
    assert "too hot" in done.stdout
