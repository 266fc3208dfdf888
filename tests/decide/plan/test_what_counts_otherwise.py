"""A plan says which failures come to count when a check is promoted, or when a known issue is taken out."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.app import app
from assay.decide.state import decision_and_fault_entries
from assay.ledger.store import Ledger
from assay.model.outcome import Outcome, SuiteRun

HEAT = "suites/production/test_gpu.py::test_gpu_temperature"
FILE = "specs/checks/checks.yaml"
KNOWN = """kind: KnownIssues
name: fleet
issues:
  - issue: https://git.example/issues/7
    match: {check: "*::test_gpu_temperature", pool: h100-a}
    reason: the sensor reads ten too much
    owner: ann
    expires: "2999-01-01"
"""


def observing(repository) -> None:
    lines = (repository.root / FILE).read_text().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if HEAT in line)
    lines.insert(at + 1, "    stage: observe\n")
    (repository.root / FILE).write_text("".join(lines))


def remember(root: Path, *runs: dict[str, str]) -> None:
    """Record what the check of heat came to on some nodes, one run after the other."""
    now, ledger = datetime.now(UTC) - timedelta(hours=1), Ledger.open(root / ".assay" / "ledger.sqlite")
    ledger.append(decision_and_fault_entries.make_enrolled_entry("n0003", "h100-a", "production", now))
    for number, verdicts in enumerate(runs):
        at = (now + timedelta(minutes=number)).isoformat()
        made = [
            Outcome(HEAT, f"h100-a/{node}/gpu0", node, verdict, "hot", phases=("production",), evidence_at=at)
            for node, verdict in verdicts.items()
        ]
        ledger.record(SuiteRun(f"run-{number}", at), made)
    ledger.close()


def plan(repository, *words: str):
    told = CliRunner().invoke(app, ["plan", "--base", "main", "--fleet", str(repository.root), *words])
    assert told.exit_code == 0, told.output
    return told.stdout


def test_promoting_a_check_says_on_which_nodes_it_fails_by_its_last_outcomes(repository):
    observing(repository)
    repository.commit()
    repository.edit(FILE, "    stage: observe\n", "")
    runs = {"n0003": "fail", "n0004": "fail", "n0005": "pass"}, {"n0004": "pass", "n0006": "error", "n0007": "fail"}
    remember(repository.root, *runs)
    document = json.loads(plan(repository, "--format", "json"))
    assert [one for one in document["recounts"] if one["what"] == HEAT] == [
        {"what": HEAT, "why": "is promoted: from now on it decides", "counts": True, "nodes": ["n0003", "n0007"]}
    ]
    assert document["reruns"] == []
    text = plan(repository)
    assert f"{HEAT} is promoted: from now on it decides; fails on 2 nodes (n0003, n0007) by its last outcomes" in text


def test_promoting_a_check_that_nobody_has_seen_fail_says_so(repository):
    observing(repository)
    repository.commit()
    repository.edit(FILE, "    stage: observe\n", "")
    assert "from now on it decides; fails on no node as far as known" in plan(repository)


def test_a_check_that_steps_back_is_told_of_too(repository):
    observing(repository)
    assert f"{HEAT} only observes from now on" in plan(repository)


@pytest.mark.parametrize("goes", [True, False])
def test_a_known_issue_that_comes_or_goes_says_whose_failures_that_touches(goes, repository):
    file = repository.root / "specs" / "known-issues.yaml"
    empty = file.read_text()
    first, second = (KNOWN, empty) if goes else (empty, KNOWN)
    file.write_text(first)
    repository.commit()
    file.write_text(second)
    remember(repository.root, {"n0003": "fail", "n0004": "pass", "n0017": "fail"})
    (found,) = json.loads(plan(repository, "--format", "json"))["recounts"]
    assert (found["what"], found["counts"], found["nodes"]) == ("https://git.example/issues/7", goes, ["n0003"])


def test_an_entry_that_is_only_written_otherwise_changes_nothing(repository):
    file = repository.root / "specs" / "known-issues.yaml"
    file.write_text(KNOWN)
    repository.commit()
    file.write_text(KNOWN.replace("2999-01-01", "2998-01-01"))
    remember(repository.root, {"n0003": "fail"})
    assert json.loads(plan(repository, "--format", "json"))["recounts"] == []
