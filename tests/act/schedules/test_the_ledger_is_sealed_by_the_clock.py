"""A schedule seals the ledger in its anchors; `ledger verify` knows them from it. A contradiction fails the slot."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from assay.act.schedules.due_slots import SLOT_RAN
from assay.cli.app import app
from assay.ledger.store import Ledger
from assay.model.ledger_entry import LedgerEntry
from tests.support.places import ROOT

AT = "2026-11-21T12:00:00+00:00"
SEALED = {"does": "ledger-seal", "cron": "7 3 * * *", "anchors": ["file:../seals", "file:../more/seals"]}


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    root = tmp_path / "fleet"
    shutil.copytree(ROOT / "tests/data/smallest", root)
    document = {"kind": "Schedules", "name": "ours", "sources": ["us"], "schedules": {"seal": SEALED}}
    (tmp_path / "more").mkdir()
    (root / "specs/ours.yaml").write_text(json.dumps(document, indent=1))
    ledger = Ledger.open(root / ".assay/ledger.sqlite")
    ledger.append(LedgerEntry("a", AT, "hold", "n1", {"who": "ann", "reason": "fan"}))
    ledger.close()
    return root


def run(fleet: Path, *words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--fleet", str(fleet)], catch_exceptions=False)


def last_slot(fleet: Path) -> dict:
    return Ledger.open(fleet / ".assay/ledger.sqlite").entries(kinds=[SLOT_RAN])[-1].body


def test_the_schedule_seals_and_verify_reads_its_anchors(fleet):
    lost = run(fleet, "ledger", "verify")
    assert lost.exit_code == 1, "anchors that are declared and hold no seal are missing"
    done = run(fleet, "schedules", "run", "seal")
    assert done.exit_code == 0, done.stdout
    assert "seal of ledger done: sealed in file:../seals, file:../more/seals" in done.stdout
    (fleet / ".assay/seals.jsonl").unlink()
    told = run(fleet, "ledger", "verify")
    assert told.exit_code == 0, told.stdout
    assert "file:../seals proves it up to entry 2 and run 0" in told.stdout
    assert "by schedule seal; after that came 1 entry" in told.stdout


def test_a_ledger_that_is_not_the_sealed_one_fails_the_slot(fleet):
    run(fleet, "schedules", "run", "seal")
    for file in (fleet / ".assay").glob("ledger.sqlite*"):
        file.unlink()
    ledger = Ledger.open(fleet / ".assay/ledger.sqlite")
    ledger.append(*(LedgerEntry(f"b{n}", AT, "hold", "n1", {"who": "bob", "reason": "fan"}) for n in range(9)))
    ledger.close()
    told = run(fleet, "schedules", "run", "seal")
    assert told.exit_code == 2
    assert "entry 2 is not the sealed one" in told.stdout
    assert last_slot(fleet)["ended"] == "failed"


def test_an_anchor_that_cannot_be_written_fails_the_slot_and_the_other_is_sealed(fleet):
    (fleet / "../seals").resolve().mkdir()
    told = run(fleet, "schedules", "run", "seal")
    assert told.exit_code == 2
    assert "an anchor is a file of its own" in told.stdout
    (fleet / "../seals").resolve().rmdir()
    (fleet / "../more").resolve().rmdir()
    told = run(fleet, "schedules", "run", "seal")
    assert told.exit_code == 2
    assert "../more/seals" in last_slot(fleet)["reason"]
    assert len((fleet / "../seals").resolve().read_text().splitlines()) == 1
    assert sqlite3.connect(fleet / ".assay/ledger.sqlite").execute("SELECT count(*) FROM entry").fetchone()[0] > 1
