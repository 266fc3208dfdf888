"""A repository with this project's declarations, a short history, and a technician who types."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.app import app
from assay.ledger.store import Ledger
from assay.model.ledger_entry import LedgerEntry
from tests.support.places import ROOT

STARTS = {"n0001": "onboard", "n0002": "triage", "n0003": "production", "n0004": "production"}


class Technician:
    """Types verbs in the fleet repository at `root`, and reads what they answer."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def types(self, *words: str) -> str:
        result = CliRunner().invoke(app, [*words, "--fleet", str(self.root)], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    def ledger(self) -> Ledger:
        return Ledger.open(self.root / ".assay" / "ledger.sqlite")


@pytest.fixture
def ann(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Technician:
    """Ann, who works on a fleet whose first four nodes are in the states of STARTS."""
    monkeypatch.setenv("ASSAY_WHO", "ann")
    monkeypatch.delenv("ASSAY_LEDGER", raising=False)
    for part in ("inventory", "specs"):
        shutil.copytree(ROOT / part, tmp_path / part)
    technician = Technician(tmp_path)
    ledger, at = technician.ledger(), "2026-11-21T12:00:00+00:00"
    for name, state in STARTS.items():
        ledger.append(LedgerEntry(f"e-{name}", at, "node.enrolled", name, {"pool": "h100-a", "state": state}))
    ledger.close()
    return technician
