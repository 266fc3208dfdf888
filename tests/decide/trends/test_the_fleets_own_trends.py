"""`assay trends` without files: the fleet's history and ledger say the same as the files that it exports."""

from __future__ import annotations

import json
import random
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner

from assay.cli.app import load_verb
from assay.decide.state.asset_history import (
    AssetReading,
    InstalledPart,
    NodeAssets,
    NodeSetup,
    make_asset_entries,
    make_setup_entry,
)
from assay.ledger.store import Ledger
from assay.model.entries.faults import FaultEntry
from assay.model.timestamps import format_time
from tests.support.places import ROOT

trends_app = load_verb("trends")

START, DAYS, NODES = datetime(2026, 3, 1, 6, tzinfo=UTC), 110, 24
AS_OF = (START + timedelta(days=DAYS)).isoformat()
CHECKS = ("suites/test_gpu.py::test_heat", "suites/test_gpu.py::test_load")


def keep_history(home: Path, warming: int) -> None:
    """Write history's files: each day a run in which each node's GPU is as warm as ever, but for one."""
    chance, database = random.Random(3), duckdb.connect()
    database.execute("""
        CREATE TABLE t (run VARCHAR, run_at VARCHAR, node VARCHAR, subject VARCHAR, check_ VARCHAR, n INTEGER,
          name VARCHAR, value DOUBLE, unit VARCHAR, at_least DOUBLE, at_most DOUBLE, source VARCHAR, evidence VARCHAR)
        """)
    for day in range(DAYS):
        at = START + timedelta(days=day)
        rows = [
            (f"r{day}", at.isoformat(), f"n{node:02}", f"h100-a/n{node:02}/gpu0", check, 0, "gpu_temperature", 55
             + 10 * load + node % 5 + chance.gauss(0, 0.5) + (max(0, day - 85) * 0.6 if node == warming else 0),
             "C", None, 85.0, "", "")
            for node in range(NODES)
            for load, check in enumerate(CHECKS)
        ]  # fmt: skip
        folder = home / "measurements" / f"day={at.date()}"
        folder.mkdir(parents=True)
        database.execute("DELETE FROM t")
        appender = database.appender("t")
        appender.append_rows(rows)
        appender.flush()
        database.execute(f"COPY t TO '{folder / f'r{day}.parquet'}'")


def note_node(ledger: Ledger, node: str, serial: str, driver: str, at: datetime) -> None:
    reading = AssetReading(node, {}, {"gpu0": InstalledPart("gpu", serial)})
    setup = make_setup_entry(NodeSetup(), NodeSetup("lab/r1", 4, "h100", "", {"driver": driver}), node, at)
    assert setup is not None
    ledger.append(*make_asset_entries(NodeAssets(), reading, at), setup)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fleet repository with months of history, in which the GPU of n07 warms up."""
    folder = tmp_path_factory.mktemp("fleet")
    for name in ("specs", "inventory"):
        shutil.copytree(ROOT / name, folder / name)
    keep_history(folder / "reports" / "history", warming=7)
    ledger = Ledger.open(folder / ".assay" / "ledger.sqlite")
    for node in range(NODES):
        note_node(ledger, f"n{node:02}", f"S{node}", "570.1", START - timedelta(days=1))
    seen = format_time(START + timedelta(days=30))
    body = {"fault": "f", "class": "gpu.missing", "subject": "h100-a/n03/gpu0", "severity": "catastrophic"}
    fault = FaultEntry.from_body({**body, "blame": "hardware", "first_seen": seen})
    ledger.append(fault.make_entry("f1", seen, "n03"))
    ledger.close()
    return folder


def ask(*words: str) -> str:
    answer = CliRunner().invoke(trends_app, list(words))
    assert isinstance(answer.exception, SystemExit | None), answer.exception
    assert answer.exit_code in (0, 1), answer.output
    return answer.stdout


def test_a_part_of_the_fleet_that_gets_worse_is_named(folder: Path) -> None:
    found = json.loads(ask("--fleet", str(folder), "--as-of", AS_OF, "--format", "json"))
    named = {(one["node"], one["subject"], one["serial"], one["name"]) for one in found["warnings"]}
    assert named == {("n07", "gpu0", "S7", f"gpu_temperature of {check}") for check in ("test_heat", "test_load")}
    assert "n07 gpu0  gpu_temperature of test_heat went from" in ask("--fleet", str(folder), "--as-of", AS_OF)


@pytest.mark.slow
def test_what_the_ledger_says_later_changes_no_earlier_answer(folder: Path, tmp_path: Path) -> None:
    earlier, own = (START + timedelta(days=100)).isoformat(), shutil.copytree(folder, tmp_path / "fleet")
    before = ask("--fleet", str(own), "--as-of", earlier, "--format", "json")
    ledger = Ledger.open(own / ".assay" / "ledger.sqlite")
    note_node(ledger, "n07", "S900", "580.2", START + timedelta(days=105))
    ledger.close()
    assert ask("--fleet", str(own), "--as-of", earlier, "--format", "json") == before


def test_a_damaged_file_is_named_and_left_out(folder: Path) -> None:
    damaged = folder / "reports" / "history" / "measurements" / "day=2026-04-01" / "r.parquet"
    damaged.write_text("no parquet")
    answer = CliRunner().invoke(trends_app, ["--fleet", str(folder), "--as-of", AS_OF, "--format", "json"])
    damaged.unlink()
    assert f"left out: {damaged}: this file of history cannot be read" in answer.stderr
    found = json.loads(answer.stdout)
    assert {one["node"] for one in found["warnings"]} == {"n07"}
    assert str(damaged) in found["unread"][0]


def test_a_fleet_without_a_history_says_so(tmp_path: Path) -> None:
    fleet = shutil.copytree(ROOT / "tests/data/smallest", tmp_path / "fleet")
    Ledger.open(fleet / ".assay" / "ledger.sqlite").close()
    answer = CliRunner().invoke(trends_app, ["--fleet", str(fleet)])
    assert "no history of measurements" in str(answer.exception)
