"""The alarms of a limit: right, wrong, or nobody can tell; two values of one limit are told apart."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from trends.planted_history import PlantedLedger, PlantedReading, keep_planted

from assay.lifecycle.node_state_projection import project_node_states
from assay.model.backtest_report import LimitRecord, describe_record
from assay.trends.limits.limit_alarms import JudgedBound, LimitKey, count_alarms, declare_bounds
from assay.trends.limits.limit_tables import LimitQuestion, open_limit_tables
from assay.trends.missed.service_failures import list_service_losses

START = datetime(2026, 3, 1, 6, tzinfo=UTC)
HEAT = "suites/test_gpu.py::test_heat"
LIMITS = {0: 85.0, 1: 70.0}


def day(number: float) -> datetime:
    return START + timedelta(days=number)


def read(days: Iterable[int], value: float, node: str = "n1", place: str = "gpu0") -> list[PlantedReading]:
    """Return the days of a part; it is at 60 °C on all others."""
    hot = {*days}
    return [
        PlantedReading(
            day(number), node, place, name="gpu_temperature", value=value if number in hot else 60, at_most=85
        )
        for number in range(0, 90, 1)
    ]


def judge(home: Path, readings: list[PlantedReading], ledger: PlantedLedger | None = None) -> dict[int, LimitRecord]:
    """Return the records of both limits."""
    keep_planted(home, readings)
    planted = ledger or make_ledger()
    states = project_node_states(planted.in_order()).values()
    losses = list_service_losses(states, {"production"}, START, day(90))
    question = LimitQuestion(home, day(90), 91, {"n1": "hgx"}, losses)
    with open_limit_tables(question) as database:
        declare_bounds(
            database,
            [LimitKey(1, HEAT, "gpu_temperature", "°C", "hgx")],
            [JudgedBound(1, "at_most", revision, value) for revision, value in LIMITS.items()],
        )
        return {key[2]: record for key, record in count_alarms(database, question.today).items()}


def make_ledger() -> PlantedLedger:
    ledger = PlantedLedger(START - timedelta(days=30))
    ledger.enrol("n1")
    return ledger


def count(record: LimitRecord) -> tuple[int, int, int, int]:
    return record.alarms, record.right, record.wrong, record.unclear


def test_an_alarm_before_a_failure_of_the_part_is_right(tmp_path: Path) -> None:
    ledger = make_ledger()
    ledger.fail("n1", "gpu0", "gpu.xid.79", day(20), hours=5)
    found = judge(tmp_path, read(range(12, 20), 75), ledger)
    assert (count(found[1]), found[1].foreseen, found[1].lead_days, found[1].failures) == ((1, 1, 0, 0), 1, 8, 1)
    assert (count(found[0]), found[0].foreseen, found[0].failures) == ((0, 0, 0, 0), 0, 1)
    assert describe_record(found[1]) == (
        "foresees 1 of 1 failures (8 d before), 1 alarms: nothing followed 0, cannot tell of 0"
    )


def test_an_alarm_that_nothing_follows_is_wrong(tmp_path: Path) -> None:
    found = judge(tmp_path, read((10, 12, 14, 40), 90))
    assert count(found[0]) == count(found[1]) == (2, 0, 2, 0), "days of one week are one alarm"


@pytest.mark.parametrize(
    ("place", "fault"), [("gpu1", "gpu.xid.79"), ("", "node.unreachable"), ("gpu0", "gpu.thermal")]
)
def test_the_failure_of_another_part_and_one_that_the_check_made_itself_do_not_count(
    tmp_path: Path, place: str, fault: str
) -> None:
    ledger = make_ledger()
    ledger.fail("n1", place, fault, day(20), hours=5)
    found = judge(tmp_path, read((15,), 75), ledger)
    assert count(found[1]) == (1, 0, 0, 1), "the node was out: somebody may have acted"
    assert (found[1].foreseen, found[1].failures) == (0, 0)


def test_what_fails_on_the_same_day_was_not_foreseen(tmp_path: Path) -> None:
    ledger = make_ledger()
    ledger.fail("n1", "gpu0", "gpu.xid.79", day(20.1), hours=5)
    found = judge(tmp_path, read((20,), 75), ledger)
    assert (found[1].foreseen, count(found[1])) == (0, (1, 0, 0, 1))


@pytest.mark.parametrize(("hot", "leaves"), [(70, None), (10, 25)], ids=["the time is not over", "it left service"])
def test_nobody_can_tell(tmp_path: Path, hot: int, leaves: int | None) -> None:
    ledger = make_ledger()
    if leaves:
        ledger.leave("n1", day(leaves), 4, [], rule="x.yaml:1 rollout")
    assert count(judge(tmp_path, read((hot,), 75), ledger)[1]) == (1, 0, 0, 1)


def test_a_failure_more_than_a_month_later_was_not_foreseen(tmp_path: Path) -> None:
    ledger = make_ledger()
    ledger.fail("n1", "gpu0", "gpu.xid.79", day(50), hours=5)
    found = judge(tmp_path, read((10,), 75), ledger)
    assert (count(found[1]), found[1].foreseen, found[1].failures) == ((1, 0, 1, 0), 0, 1)
