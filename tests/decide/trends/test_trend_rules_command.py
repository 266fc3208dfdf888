"""`assay trends` shows the record of each rule, and what follows from each warning."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.app import load_verb
from assay.cli.verbs.trends import format_records, parse_moment, read_rule_records
from assay.cli.workspace import Workspace
from assay.decide.trends.warnings import find_revision
from assay.declare.starter.shipped_specs import find_trend_rules
from assay.ledger.store import Ledger
from assay.model.entries.faults import TrendClosedEntry, TrendDemotedEntry, TrendWarnedEntry
from assay.model.timestamps import format_time
from tests.decide.trends.planted_fleet import PlantedFleet
from tests.support.places import ROOT

trends_app = load_verb("trends")

AT = datetime(2026, 3, 1, 4, tzinfo=UTC)
RULES = find_trend_rules(None)


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """A fleet with seven warnings of heat: five right, one wrong, one open. The rule of speed lost its stage."""
    root = tmp_path / "fleet"
    shutil.copytree(ROOT / "tests/data/smallest", root)
    ledger = Ledger.open(root / ".assay" / "ledger.sqlite")
    for number, outcome in enumerate([*["right"] * 5, "wrong", None]):
        warned = TrendWarnedEntry(
            f"w{number}", "heat", find_revision(RULES, "heat"), "record", "gpu0", "", "gpu_temperature", "C", 61.0,
            70.0, 9.0, 39,
        )  # fmt: skip
        ledger.append(warned.make_entry(f"a{number}", format_time(AT), "n1"))
        if outcome:
            lead = 9.0 if outcome == "right" else None
            closed = TrendClosedEntry(f"w{number}", "heat", outcome, "so it was", "", lead)  # type: ignore[arg-type]
            ledger.append(closed.make_entry(f"b{number}", format_time(AT + timedelta(days=20)), "n1"))
    demoted = TrendDemotedEntry("speed", find_revision(RULES, "speed"), "0 of 60 warnings were right")
    ledger.append(demoted.make_entry("c", format_time(AT)))
    ledger.close()
    return root


def ask(*words: str) -> str:
    answer = CliRunner().invoke(trends_app, list(words), catch_exceptions=False)
    assert answer.exit_code in (0, 1), answer.output
    return answer.stdout


def show_records(fleet: Path, as_of: datetime = AT + timedelta(days=30)) -> list[str]:
    _, records = read_rule_records(Workspace(fleet), as_of)
    return [*format_records(records)]


def test_the_record_of_each_rule_is_shown(fleet: Path) -> None:
    told = show_records(fleet)
    line = told.index("heat     record   5 right, 1 wrong, 1 open")
    assert "right 0.83 (0.50 to 0.96); foresaw 5 of 5 failures; 9 d before (nine in ten: 9 d)" in told[line + 1]
    assert "0 idle tests meanwhile, 0.0 node-hours; what acting prevented is not known" in told[line + 1]
    assert "         only observes: 0 of 60 warnings were right" in told
    records = {one.name: one for one in read_rule_records(Workspace(fleet), AT + timedelta(days=30))[1]}
    assert list(records) == list(RULES.rules)
    assert (records["speed"].declared_stage, records["speed"].stage) == ("record", "observe")
    assert records["heat"].precision == pytest.approx(5 / 6, abs=1e-3)


def test_what_came_later_is_not_known_before(fleet: Path) -> None:
    assert "heat     record   7 open" in show_records(fleet, AT + timedelta(days=10))


def test_each_warning_says_what_follows(tmp_path: Path) -> None:
    planted = PlantedFleet(tmp_path)
    planted.courses[3] = lambda day: max(0, day - 90) * 0.6
    planted.grow()
    (warning,) = planted.ask()["warnings"]
    assert (warning["rule"], warning["p"]) == ("heat", None)
    assert f"  heat: {warning['answer']}\n" in ask(*planted.write())
    assert warning["answer"].startswith(
        "test it next, while it is idle: how many such warnings are right is not known yet"
    )


def test_now_is_the_time_of_the_fleets_clock(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Lab:
        def now(self) -> datetime:
            return AT + timedelta(days=10)

    monkeypatch.setattr(Workspace, "clock", Lab())
    assert parse_moment("", Workspace(fleet)) == AT + timedelta(days=10)
