"""`assay prune` deletes what the policy no longer wants, and nothing else; it says what is lost."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.app import app
from assay.decide.state.decision_and_fault_entries import make_enrolled_entry
from assay.ledger.history.append import append_missing_runs
from assay.ledger.runs.writer import OutcomeWriter
from assay.ledger.store import Ledger
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import FailureArtefact, Outcome, SuiteRun
from tests.support.places import ROOT

NOW = datetime.now(UTC)
AGES = (90, 80, 70, 60, 2, 1)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A fleet with runs of these ages in days; each has an artefact of its own, and all share one."""
    for folder in ("inventory", "suites"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    shutil.copytree(ROOT / "specs", tmp_path / "specs")
    shared = "f" * 64
    for number, days in enumerate(AGES):
        when = NOW - timedelta(days=days)
        run = SuiteRun(
            f"{when:%Y%m%dT%H%M%S}.000-abcde{number}", when.isoformat(), nodes=("n0003",), spec_commit="c" * 40
        )
        file = tmp_path / "reports" / "runs" / run.id / "run.sqlite"
        file.parent.mkdir(parents=True)
        writer = OutcomeWriter(file, run, {"ended": "whole"} if days != 70 else {})
        own = f"{number:064}"
        artefacts = tuple(FailureArtefact("log/n0003", digest, 1) for digest in (own, shared))
        writer(Outcome("suites/a.py::test_a", "h100-a/n0003", "n0003", "fail", "so", artefacts=artefacts[:1]))
        writer(Outcome("suites/a.py::test_b", "h100-a/n0003", "n0003", "fail", "so", artefacts=artefacts[1:]))
        writer.close()
        for digest in (own, shared):
            path = tmp_path / "reports" / "artefacts" / digest[:2] / f"{digest}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")
    return tmp_path


def allow(home: Path, days: float = 30, least: int = 2) -> None:
    policy = home / "specs" / "lifecycle" / "default.yaml"
    policy.write_text(f"{policy.read_text()}\nretention: {{runs_days: {days}, least_runs: {least}}}\n")


def command(home: Path, *words: str):
    done = CliRunner().invoke(app, ["prune", "--fleet", str(home), *words])
    assert done.exit_code == 0, done.exception
    return done.stdout


def left(home: Path) -> list[str]:
    return sorted(path.name[-1] for path in (home / "reports" / "runs").iterdir())


def test_without_a_rule_everything_is_kept(home):
    assert "keeps every run" in command(home, "--yes")
    assert left(home) == list("012345")


def test_old_runs_are_shown_first_and_deleted_when_that_is_said(home):
    allow(home)
    assert append_missing_runs(home / "reports") == []
    said = command(home)
    assert "3 runs and 3 artefacts" in said
    assert "nothing is deleted without --yes" in said
    assert "could judge 3 runs of them no more" in said
    assert left(home) == list("012345")
    plain = json.loads(command(home, "--yes", "--format", "json"))
    assert (len(plain["runs"]), plain["artefacts"], plain["rejudgeable"], plain["deleted"]) == (3, 3, 3, True)
    assert [kept["why"] for kept in plain["kept"]] == ["it has not ended"]
    assert left(home) == ["2", "4", "5"]
    names = {file.stem for file in (home / "reports" / "artefacts").glob("*/*.txt")}
    assert names == {f"{number:064}" for number in (2, 4, 5)} | {"f" * 64}
    done = CliRunner().invoke(app, ["history", "--outcomes", "n0003", "--days", "120", "--fleet", str(home)])
    assert done.exit_code == 0
    assert "0 runs and 0 artefacts" in command(home, "--yes")


def test_what_history_lacks_or_nobody_can_read_is_kept_and_named(home):
    allow(home)
    assert len(json.loads(command(home, "--yes", "--format", "json"))["kept"]) == 4
    assert left(home) == list("012345")
    assert append_missing_runs(home / "reports") == []
    damaged = min((home / "reports" / "runs").iterdir()) / "run.sqlite"
    damaged.write_bytes(b"nothing")
    said = command(home, "--yes")
    assert f"kept {damaged.parent.name}: {damaged}" in said
    assert left(home) == ["0", "2", "4", "5"]
    assert len(list((home / "reports" / "artefacts").glob("*/*.txt"))) == 7  # it may refer to any of them


def test_the_newest_runs_are_kept_however_old_they_are(home):
    allow(home, days=0.1, least=5)
    assert append_missing_runs(home / "reports") == []
    command(home, "--yes")
    assert left(home) == list("12345")


def test_archives_of_collect_go_with_old_runs_but_none_of_an_open_incident(home):
    """n0003 has no fault. n0004 has one since before its second archive. Nobody knows x."""
    allow(home)
    ledger = Ledger.open(home / ".assay" / "ledger.sqlite")
    begun = NOW - timedelta(days=60)
    archives = {("n0003", "a"): 70, ("n0003", "b"): 2, ("n0004", "c"): 70, ("n0004", "d"): 50}
    for node in ("n0003", "n0004"):
        ledger.append(make_enrolled_entry(node, "h100-a", "production", NOW - timedelta(days=90)))
    for (node, effect), days in archives.items():
        at = (NOW - timedelta(days=days)).isoformat()
        about = {"effect": effect, "action": "collect", "decision": "d"}
        ledger.append(
            LedgerEntry(f"i-{effect}", at, "effect.intent", node, about),
            LedgerEntry(f"v-{effect}", at, "effect.verified", node, about),
        )
    times = {"first_seen": begun.isoformat(), "last_seen": begun.isoformat()}
    fault = {"fault": "f", "class": "gpu.xid.79", "subject": "h100-a/n0004/gpu0", "count": 1, "detail": "so", **times}
    fault |= {"severity": "catastrophic", "blame": "hardware", "remedy": "reboot"}
    ledger.append(LedgerEntry("f", begun.isoformat(), "fault", "n0004", fault))
    folder = home / "reports" / "diagnostics"
    folder.mkdir()
    for node, effect in [*archives, ("n0003", "x")]:
        (folder / f"{node}-{effect}.zip").write_text("x")
    assert "2 archives of `collect`, " in command(home)
    assert len(list(folder.iterdir())) == 5
    assert json.loads(command(home, "--yes", "--format", "json"))["archives"] == ["n0003-a.zip", "n0004-c.zip"]
    assert sorted(file.stem for file in folder.iterdir()) == ["n0003-b", "n0003-x", "n0004-d"]
