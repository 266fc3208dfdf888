"""A person who types verbs in a fleet repository with a short history. Import the fixture `ann` in a conftest."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from assay.cli.app import app
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from tests.support.noted_readings import note_readings
from tests.support.places import ROOT


class Person:
    """Types verbs in a fleet repository at `root`, and reads what they answer."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def types(self, *words: str) -> str:
        result = CliRunner().invoke(app, [*words, "--fleet", str(self.root)], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    def reads(self, *words: str) -> Any:
        return json.loads(self.types(*words, "--format", "json"))

    def is_refused(self, *words: str, at: Path | None = None) -> str:
        with pytest.raises(AssayError) as told:
            CliRunner().invoke(app, [*words, "--fleet", str(at or self.root)], catch_exceptions=False)
        return str(told.value)

    def kinds(self, node: str) -> list[str]:
        return [entry["kind"] for entry in self.reads("history", node)["entries"]]

    def ledger(self) -> Ledger:
        return Ledger.open(self.root / ".assay" / "ledger.sqlite")


@pytest.fixture
def ann(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    """Ann, who works on a fleet with n0001 in onboard, n0002 in triage, and n0003 and n0004 in production."""
    monkeypatch.setenv("ASSAY_WHO", "ann")
    monkeypatch.delenv("ASSAY_LEDGER", raising=False)
    for part in ("inventory", "specs"):
        shutil.copytree(ROOT / part, tmp_path / part)
    spec = tmp_path / "specs/nodes/hgx-h100.yaml"
    spec.write_text(spec.read_text().replace("lab1.example", "oslo.internal"))  # or its settings stand in for a site's
    starts = {"n0001": "onboard", "n0002": "triage", "n0003": "production", "n0004": "production"}
    person, ledger = Person(tmp_path), Ledger.open(tmp_path / ".assay" / "ledger.sqlite")
    ledger.append(
        *(
            LedgerEntry(
                f"e-{node}", "2026-11-21T12:00:00+00:00", "node.enrolled", node, {"pool": "h100-a", "state": state}
            )
            for node, state in starts.items()
        )
    )
    ledger.close()
    note_readings(tmp_path)
    return person
