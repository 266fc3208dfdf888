"""`assay schedules`: a calm table for people, one document for machines, and no ledger made by looking."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.act.schedules.due_slots import SLOT_BEGUN, SLOT_RAN
from assay.cli.app import app
from assay.ledger.store import Ledger
from assay.model.ledger_entry import LedgerEntry
from tests.support.places import ROOT

LAST = {
    "schedule": "fabric-scan",
    "part": "compute",
    "does": "fabric-scan",
    "slot": "2026-11-21T06:17:00+00:00",
    "attempt": 1,
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for part in ("inventory", "specs"):
        shutil.copytree(ROOT / part, tmp_path / part)
    return tmp_path


def asked(root: Path, *more: str) -> str:
    done = CliRunner().invoke(app, ["schedules", "--fleet", str(root), *more], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def of(root: Path, name: str) -> dict:
    rows = json.loads(asked(root, "--format", "json"))["schedules"]
    return next(row for row in rows if row["schedule"] == name)


def test_every_schedule_is_told_with_its_next_slot_and_nothing_is_made(root):
    text = asked(root)
    for word in ("looks", "fabric-scan", "fabric-week", "idle-verification", "stale", "every 15 min", "now"):
        assert word in text
    assert "no pool with a scheduler in this fleet" in text
    assert not (root / ".assay").exists()


def test_the_last_slot_is_told_with_how_it_ended(root):
    ledger = Ledger.open(root / ".assay/ledger.sqlite")
    ledger.append(LedgerEntry("1", "", SLOT_BEGUN, body=LAST))
    row = of(root, "fabric-scan")
    assert (row["slot"], row["ended"], row["reason"]) == (LAST["slot"], "begun", "attempt 1")
    ledger.append(LedgerEntry("2", "", SLOT_RAN, body={**LAST, "ended": "failed", "reason": "no answer"}))
    row = of(root, "fabric-scan")
    assert (row["slot"], row["ended"], row["reason"]) == (LAST["slot"], "failed", "no answer")
    assert "failed: no answer" in asked(root)


def test_the_next_slot_is_in_the_future_and_what_is_due_says_so(root):
    asked_at, row = datetime.now(UTC), of(root, "fabric-scan")
    assert row["due"], "it never ran"
    assert datetime.fromisoformat(row["next"]) > asked_at
    assert of(root, "looks")["next"] == ""


def test_a_fleet_without_schedules_is_told_how_to_get_some(root):
    shutil.rmtree(root / "specs/schedules")
    assert "assay init" in asked(root)
    assert json.loads(asked(root, "--format", "json")) == {"schedules": [], "context": "fleet"}
