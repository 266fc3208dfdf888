"""A plan says what the old and the new value of a limit show in 90 days, and which open warnings become obsolete."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from trends.planted_history import PlantedLedger, PlantedReading, damage_file, keep_planted
from typer.testing import CliRunner

from assay.cli.app import app
from assay.controller.plan_facts import load_plan_facts
from assay.controller.plan_revisions import load_plan_revisions
from assay.ledger.store import Ledger
from assay.model.backtest_report import LimitTrial
from assay.model.entries.trend_entries import TrendClosedEntry, TrendWarnedEntry
from assay.model.ledger_entry import LedgerEntry
from assay.model.timestamps import format_time
from assay.plan.change_plan import make_change_plan
from assay.plan.fleet_revision import FleetRevision
from assay.plan.output_formats import format_plan_text
from assay.plan.shapes.plan_document import format_plan_json

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
START = NOW - timedelta(days=89)
HEAT = "suites/production/test_gpu.py::test_gpu_temperature"
LIMIT: dict[str, Any] = {"name": "gpu_temperature", "at_most": 85.0, "source": "specs/nodes/hgx-h100.yaml:1"}
NODES = ("n0001", "n0002", "n0003", "n0004")
HOT = {("n0001", day) for day in range(40, 50)} | {("n0002", 20), ("n0003", 85)}


def day(number: float) -> datetime:
    return START + timedelta(days=number)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four GPUs at 60 °C. Three run at 80 °C on some days: one before it fails, one in vain, one lately."""
    home = tmp_path_factory.mktemp("history")
    keep_planted(
        home,
        [
            PlantedReading(day(number), node, "gpu0", HEAT, value=80 if (node, number) in HOT else 60, **LIMIT)
            for number in range(90)
            for node in NODES
        ],
    )
    return home


def warn(ident: str, node: str, now: float, rate_days: float, **changes: Any) -> LedgerEntry:
    values = {
        "rule": "gpu.heat", "revision": "r", "stage": "observe", "place": "gpu0", "serial": "", "unit": "°C",
        "name": "gpu_temperature of test_gpu_temperature", "before": 60, "z": 9, "peers": 30, "limit": 85.0,
    }  # fmt: skip
    content = TrendWarnedEntry(warning=ident, now=now, rate_days=rate_days, **{**values, **changes})
    return content.make_entry(f"warned {ident}", format_time(day(80)), node)


def list_warnings() -> Iterator[LedgerEntry]:
    yield warn("beyond", "n0001", now=82, rate_days=10)
    yield warn("slow", "n0002", now=75, rate_days=20)
    yield warn("far anyway", "n0004", now=70, rate_days=40)
    yield warn("ended", "n0003", now=82, rate_days=10)
    yield warn("another limit", "n0003", now=82, rate_days=10, limit=99.0)
    yield warn("another unit", "n0003", now=82, rate_days=10, unit="K")
    yield TrendClosedEntry("ended", "gpu.heat", "wrong", "it was").make_entry("closed", format_time(day(82)), "n0003")


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    planted = PlantedLedger(START - timedelta(days=30))
    planted.enrol(*NODES)
    planted.fail("n0001", "gpu0", "gpu.xid.79", day(50), hours=5)
    file = tmp_path_factory.mktemp("ledger") / "ledger.sqlite"
    opened = Ledger.open(file)
    opened.append(*planted.in_order(), *list_warnings())
    opened.close()
    return file


def read_revisions(repository) -> tuple[FleetRevision, FleetRevision]:
    return load_plan_revisions(repository.root, "HEAD")


def try_limit(repository, ledger: Path, history: Path, value: str = "value: 79, unit: °C") -> tuple[LimitTrial, ...]:
    repository.spec("gpu_temperature: {value: 85, unit: °C", f"gpu_temperature: {{{value}")
    return load_plan_facts(ledger, *read_revisions(repository), NOW, history).limit_trials


def test_a_tighter_limit_foresees_more_and_costs_more(repository, ledger: Path, history: Path) -> None:
    (trial,) = try_limit(repository, ledger, history)
    assert (trial.limit, trial.specs, trial.measurement, trial.side) == (
        "gpu_temperature", ("hgx-h100",), "gpu_temperature", "at_most",
    )  # fmt: skip
    assert trial.old is not None
    assert trial.new is not None
    assert (trial.old.foreseen, trial.old.failures, trial.old.alarms) == (0, 1, 0)
    assert (trial.new.foreseen, trial.new.right, trial.new.wrong, trial.new.unclear) == (1, 1, 1, 1)
    assert trial.new.lead_days == 10
    told = [(one.warning, one.reason) for one in trial.obsolete]
    assert told == [("beyond", "at 82 it is beyond 79: the check fails")]


def test_a_looser_limit_makes_warnings_of_the_old_one_obsolete(repository, ledger: Path, history: Path) -> None:
    (trial,) = try_limit(repository, ledger, history, "value: 95, unit: °C")
    told = [(one.warning, one.reason) for one in trial.obsolete]
    assert told == [
        ("beyond", "at its rate it reaches 95 in 43 d, not 85 in 10 d"),
        ("slow", "at its rate it reaches 95 in 40 d, not 85 in 20 d"),
    ]


def test_a_limit_that_moves_by_little_leaves_warnings_as_they_are(repository, ledger: Path, history: Path) -> None:
    (trial,) = try_limit(repository, ledger, history, "value: 86, unit: °C")
    assert trial.obsolete == ()


def test_people_and_programs_read_it_in_the_plan(repository, ledger: Path, history: Path) -> None:
    repository.spec("gpu_temperature: {value: 85", "gpu_temperature: {value: 79")
    before, after = read_revisions(repository)
    plan = make_change_plan(before, after, load_plan_facts(ledger, before, after, NOW, history))
    told = format_plan_text(plan)
    assert "gpu_temperature at most 85 → 79 °C of hgx-h100 (test_gpu_temperature)" in told
    assert "old: foresees 0 of 1 failures, 0 alarms: nothing followed 0, cannot tell of 0" in told
    assert "new: foresees 1 of 1 failures (10 d before), 3 alarms: nothing followed 1, cannot tell of 1" in told
    assert "obsolete: the warning of n0001 gpu0, gpu_temperature of test_gpu_temperature: at 82 it is beyond 79" in told
    (trial,) = json.loads(format_plan_json(plan))["limit_trials"]
    assert (trial["old_value"], trial["new_value"], trial["new"]["foreseen"]) == (85, 79, 1)


def test_without_a_history_or_a_changed_limit_nothing_is_tried(
    repository, ledger: Path, history: Path, tmp_path: Path
) -> None:
    assert load_plan_facts(ledger, *read_revisions(repository), NOW, history).limit_trials == ()
    assert try_limit(repository, ledger, tmp_path / "none") == ()


def test_damaged_files_of_history_are_left_out_and_named(repository) -> None:
    start, history = datetime.now(UTC) - timedelta(days=3), repository.root / "reports" / "history"
    days = [start + timedelta(days=number) for number in range(3)]
    keep_planted(history, [PlantedReading(at, "n0001", "gpu0", HEAT, value=60, **LIMIT) for at in days])
    folders = [history / "measurements" / f"day={at.date()}" for at in days]
    damaged = [damage_file(folders[0], is_cut=True), damage_file(folders[1], is_cut=False)]
    planted = PlantedLedger(start - timedelta(days=30))
    planted.enrol("n0001")
    (repository.root / ".assay").mkdir(exist_ok=True)
    opened = Ledger.open(repository.root / ".assay" / "ledger.sqlite")
    opened.append(*planted.in_order())
    opened.close()
    repository.spec("gpu_temperature: {value: 85, unit: °C", "gpu_temperature: {value: 79, unit: °C")
    told = CliRunner().invoke(app, ["plan", "--base", "HEAD", "--fleet", str(repository.root)])
    assert told.exit_code == 0, told.output
    assert [line.split(":")[1].strip() for line in told.stderr.splitlines() if "left out" in line] == [
        *map(str, damaged)
    ]
    assert "gpu_temperature at most 85 → 79 °C of hgx-h100 (test_gpu_temperature)" in told.stdout


def test_where_every_file_of_history_is_damaged_nothing_is_tried(repository, ledger: Path, tmp_path: Path) -> None:
    keep_planted(tmp_path, [PlantedReading(NOW - timedelta(days=1), "n0001", "gpu0", HEAT, value=60, **LIMIT)])
    for table in ("measurements", "outcomes"):
        damage_file(next((tmp_path / table).iterdir()), is_cut=True)
    assert try_limit(repository, ledger, tmp_path) == ()


def test_a_history_that_ended_long_ago_tries_nothing(repository, ledger: Path, tmp_path: Path) -> None:
    keep_planted(tmp_path, [PlantedReading(NOW - timedelta(days=200), "n0001", "gpu0", HEAT, value=60, **LIMIT)])
    assert try_limit(repository, ledger, tmp_path) == ()
