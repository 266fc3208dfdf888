"""`assay trends missed`: planted failures, of which some were foreseen, some seen only then, and some never."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from trends.planted_history import PlantedLedger, PlantedReading, keep_planted
from typer.testing import CliRunner

from assay.cli.verbs.evidence.trends import trends_app
from assay.ledger.store import Ledger
from assay.results.history.outcome_and_pool_queries import OutcomeHistory
from assay.trends.missed.early_signs import EarlySign
from assay.trends.missed.missed_failures import MissedReport, find_missed_failures

START = datetime(2026, 3, 1, 6, tzinfo=UTC)
END = START + timedelta(days=90)
NODES = [f"n{number:02}" for number in range(12)]
HEAT, ALWAYS = "suites/test_gpu.py::test_heat", "suites/test_gpu.py::test_always"
HALF_AN_HOUR = timedelta(minutes=30)


def day(number: float) -> datetime:
    return START + timedelta(days=number)


def heat(node: str, number: float, place: str = "gpu0", value: float = 60, observed: bool = False) -> PlantedReading:
    limit = {"name": "gpu_temperature", "at_most": 85.0, "observed": observed}
    return PlantedReading(day(number), node, place, HEAT, value=value, **limit)


def list_readings() -> Iterator[PlantedReading]:
    """Yield a quiet fleet in which some parts run hot on some days, and one check fails everywhere."""
    hot = {
        ("n01", "gpu0"): range(45, 50),  # foreseen, by a check on trial
        ("n02", "gpu0"): (40,),  # with the failure
        ("n04", "gpu0"): range(25, 30),  # another part of the node
        ("n05", "gpu0"): range(20, 22),  # before a repair
        ("n08", "gpu0"): (5, 6),  # too long before
    }
    for number in range(90):
        for node in NODES:
            if node == "n07" and number < 10:
                continue
            for place in ("gpu0", "gpu1"):
                is_hot = number in hot.get((node, place), ())
                yield heat(node, number, place, 88 if is_hot else 60, observed=node == "n01")
            yield PlantedReading(day(number), node, "gpu0", ALWAYS, "gpu.noise", fails=True)


def plant_ledger() -> PlantedLedger:
    ledger = PlantedLedger(START - timedelta(days=30))
    ledger.enrol(*NODES)
    ledger.fail("n01", "gpu0", "gpu.xid.79", day(50), hours=100)
    ledger.fail("n02", "gpu0", "gpu.thermal", day(40) + HALF_AN_HOUR, hours=50)
    ledger.fail("n03", "gpu0", "gpu.xid.79", day(60), hours=200)
    ledger.fail("n04", "gpu1", "gpu.xid.48", day(30.5), hours=10)
    ledger.leave("n05", day(23), 24, [], rule="x.yaml:1 rollout")
    ledger.fail("n05", "gpu0", "gpu.xid.79", day(30), hours=20)
    ledger.fail("n06", "gpu0", "config.drift", day(30), hours=20, blame="operator")
    ledger.fail("n07", "gpu0", "gpu.xid.79", day(9), hours=30)
    ledger.fail("n08", "gpu0", "gpu.xid.79", day(70), hours=5)
    ledger.warn("n10", "gpu1", "gpu.heat", day(66))
    ledger.warn("n10", "gpu0", "gpu.heat", day(64))
    ledger.fail("n10", "gpu1", "gpu.xid.79", day(72), hours=6)
    ledger.fail("n09", "", "node.unreachable", day(80), hours=1, severity="catastrophic")
    return ledger


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("history")
    keep_planted(home, list_readings())
    return home


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    opened = Ledger.open(tmp_path_factory.mktemp("ledger") / "ledger.sqlite")
    opened.append(*plant_ledger().in_order())
    yield opened
    opened.close()


def find(history: Path, ledger: Ledger, as_of: datetime = END, days: int = 90) -> MissedReport:
    with OutcomeHistory(history, as_of) as read:
        return find_missed_failures(ledger, read, {"production"}, days)


def tell(report: MissedReport) -> dict[str, str]:
    return {one.failure.node: one.foresight for one in report.judged}


def test_each_failure_is_told_as_it_was_planted(history: Path, ledger: Ledger) -> None:
    report = find(history, ledger)
    assert tell(report) == {
        "n01": "before", "n02": "then", "n03": "never", "n04": "never", "n05": "never", "n07": "cannot tell",
        "n08": "never", "n09": "never", "n10": "before",
    }  # fmt: skip
    assert report.others == 2, "the rollout, and the fault that operators caused"
    assert [one.failure.node for one in report.judged][:3] == ["n03", "n01", "n02"], "by node-hours"


def test_the_sign_and_its_lead_are_named(history: Path, ledger: Ledger) -> None:
    foreseen, warned = find(history, ledger).select("before")
    sign = foreseen.sign
    assert sign is not None
    assert (sign.kind, sign.name, sign.what, sign.excused) == ("limit", HEAT, "gpu_temperature 88 > 85 °C", True)
    assert foreseen.lead == timedelta(days=5)
    assert warned.sign == EarlySign("warning", "gpu.heat", day(66), "it gets worse")
    assert warned.lead == timedelta(days=6)


def test_a_check_that_fails_everywhere_foresees_nothing(history: Path, ledger: Ledger) -> None:
    assert find(history, ledger).common == {ALWAYS: 1.0}


def test_the_checks_worth_writing_are_named_by_what_they_would_have_spared(history: Path, ledger: Ledger) -> None:
    first, *others = find(history, ledger).missing_checks
    assert (first.fault, first.part, first.failures, first.node_hours, first.checks) == (
        "gpu.xid.79",
        "gpu",
        3,
        225,
        (),
    )
    assert [(one.fault, one.part) for one in others] == [("gpu.xid.48", "gpu"), ("node.unreachable", "node")]


def test_nothing_after_the_moment_is_read(history: Path, ledger: Ledger, tmp_path: Path) -> None:
    earlier = day(62)
    for table in ("outcomes", "measurements"):
        for folder in sorted((history / table).iterdir())[:62]:
            shutil.copytree(folder, tmp_path / table / folder.name)
    told = find(tmp_path, ledger, earlier).as_json()
    assert told == find(history, ledger, earlier).as_json()
    assert [one["node_hours"] for one in told["failures"] if one["node"] == "n03"] == [47.0], "still out"


def test_a_sign_after_the_failure_foresees_nothing(ledger: Ledger, tmp_path: Path) -> None:
    late = [heat("n01", number, value=88 if number == 51 else 60) for number in range(90)]
    keep_planted(tmp_path, late)
    assert tell(find(tmp_path, ledger))["n01"] == "then"


def test_an_order_of_people_is_a_failure_while_a_fault_of_hardware_is_open(history: Path, tmp_path: Path) -> None:
    planted = PlantedLedger(START - timedelta(days=30))
    planted.enrol("n11")
    planted.see("n11", "gpu0", "gpu.xid.79", day(30))
    for number in (31, 60):
        planted.leave("n11", day(number), 24, [], rule="x.yaml:1 person")
    opened = Ledger.open(tmp_path / "ledger.sqlite")
    opened.append(*planted.in_order())
    report = find(history, opened)
    opened.close()
    assert [(one.failure.seen_at, one.failure.left_at) for one in report.judged] == [(day(30), day(31))]
    assert report.others == 1, "the fault was not seen again after the node came back"


def test_the_command_says_it_in_lines_and_as_data(history: Path, ledger: Ledger, fleet_with: Path) -> None:
    shutil.copytree(history, fleet_with / "reports" / "history")
    words = ["missed", "--fleet", str(fleet_with), "--as-of", day(90).isoformat()]
    told = CliRunner().invoke(trends_app, words).stdout
    assert "9 failures of hardware took nodes out of service in 90 days; other absences: 2" in told
    assert "n01 gpu0  gpu.xid.79 2026-04-20, 100 node-hours: seen 5.0 d before, by gpu_temperature 88 > 85 °C" in told
    assert "n10 gpu1  gpu.xid.79 2026-05-12, 6 node-hours: seen 6.0 d before, by it gets worse, gpu.heat" in told
    assert "gpu.xid.79 of gpu: 3 failures, 225 node-hours; no check means this fault" in told
    assert "No sign, as they fail so often elsewhere: test_always (100%)" in told
    data = json.loads(CliRunner().invoke(trends_app, [*words, "--format", "json"]).stdout)
    assert data["counts"] == {"before": 2, "then": 1, "never": 5, "cannot tell": 1}


@pytest.fixture
def fleet_with(tmp_path: Path) -> Path:
    """A fleet repository with the planted ledger."""
    root = Path(__file__).resolve().parents[3]
    for name in ("specs", "inventory"):
        shutil.copytree(root / name, tmp_path / name)
    opened = Ledger.open(tmp_path / ".assay" / "ledger.sqlite")
    opened.append(*plant_ledger().in_order())
    opened.close()
    return tmp_path


def test_a_fleet_without_outcomes_says_so(tmp_path: Path) -> None:
    answer = CliRunner().invoke(trends_app, ["missed", "--fleet", str(tmp_path)])
    assert "no history of outcomes" in str(answer.exception)
