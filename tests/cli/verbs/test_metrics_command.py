"""`assay metrics` prints what Prometheus reads, or replaces a file of node_exporter's textfile collector."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.app import app, load_verb
from assay.decide.state.decision_and_fault_entries import make_enrolled_entry
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from tests.support.places import ROOT


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    for part in ("inventory", "specs"):
        shutil.copytree(ROOT / part, tmp_path / part)
    ledger = Ledger.open(tmp_path / ".assay" / "ledger.sqlite")
    ledger.append(make_enrolled_entry("n0001", "h100-a", "triage", datetime.now(UTC)))
    ledger.close()
    return tmp_path


def test_the_text_and_the_file_say_the_same(ask, tmp_path):
    line = 'assay_nodes{in_service="false",pool="h100-a",reason="inventory",state="triage"} 1.0'
    assert line in ask("metrics").splitlines()
    target = tmp_path / "assay.prom"
    target.write_text("what was there before")
    assert ask("metrics", "--to", str(target)) == ""
    assert line in target.read_text().splitlines()
    assert [path.name for path in tmp_path.glob("*prom*")] == ["assay.prom"], "no draft is left"


def test_a_file_that_node_exporter_does_not_read_is_refused(fleet):
    with pytest.raises(AssayError, match=r"node_exporter reads no such file") as told:
        CliRunner().invoke(app, ["metrics", "--to", "assay.txt", "--fleet", str(fleet)], catch_exceptions=False)
    assert told.value.fix == "give it a name that ends with .prom"


def test_without_a_ledger_there_are_no_metrics_and_none_is_made(fleet):
    (fleet / ".assay/ledger.sqlite").unlink()
    with pytest.raises(AssayError, match="ledger"):
        CliRunner().invoke(app, ["metrics", "--fleet", str(fleet)], catch_exceptions=False)
    assert not (fleet / ".assay/ledger.sqlite").exists()


@pytest.mark.parametrize("word", ["--once", "--settle"])
def test_a_controller_that_ends_serves_no_metrics(fleet, word):
    words = [word, "--metrics", "127.0.0.1:0", "--fleet", str(fleet)]
    with pytest.raises(AssayError, match="cannot serve metrics"):
        CliRunner().invoke(load_verb("reconcile"), words, catch_exceptions=False)
