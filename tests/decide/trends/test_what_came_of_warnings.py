"""A warning ends as right, wrong, overtaken or cannot tell, by what the ledger and the history say of its part."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from assay.decide.state.asset_history import PartHolder
from assay.decide.state.service_absences import ServiceAbsence
from assay.decide.trends.fleet_tables import PartFailure
from assay.decide.trends.warning_record import TrendWarning
from assay.decide.trends.warnings import PartFates, close_warning
from assay.model.entries.faults import TrendWarnedEntry
from assay.model.specs.trend_rules import TrendRule
from assay.model.timestamps import format_time

AT = datetime(2026, 3, 1, 4, tzinfo=UTC)
RULE = TrendRule(measurements=["*temperature"], fault="trend.heat", failures=["gpu.*"], source="a test")


def day(number: float) -> datetime:
    return AT + timedelta(days=number)


def warn(serial: str = "S1", place: str = "gpu5") -> TrendWarning:
    numbers = {"before": 61.0, "now": 70.0, "z": 9.0, "peers": 39}
    names = {"name": "gpu_temperature", "unit": "C", "place": place, "serial": serial, "reason": "hotter"}
    return TrendWarning("n1", AT, TrendWarnedEntry("w1", "heat", "r1", "record", **names, **numbers))  # type: ignore[arg-type]


def hold(node: str, place: str, serial: str, since: float = -100, until: float | None = None) -> PartHolder:
    times = (format_time(day(since)), format_time(day(until)) if until is not None else "")
    return PartHolder(node, place, "gpu", serial, "h100", "", "1.0", "r1", place, *times)


def fail(number: float, node: str = "n1", place: str = "gpu5", fault: str = "gpu.xid.79") -> PartFailure:
    return PartFailure(day(number), node, place, fault, "f1")


def end(fates: PartFates, now: float, warning: TrendWarning | None = None) -> tuple[str, float | None] | None:
    closed = close_warning(warning or warn(), RULE, fates, day(now))
    return (closed.outcome, closed.lead_days) if closed else None


def test_a_failure_of_the_part_within_the_horizon_proves_it_right() -> None:
    fates = PartFates([fail(9)], {"n1": [hold("n1", "gpu5", "S1")]})
    assert end(fates, 10) == ("right", 9.0)
    closed = close_warning(warn(), RULE, fates, day(10))
    assert closed is not None
    assert (closed.fault, closed.warning) == ("f1", "w1")
    assert "gpu.xid.79 on n1/gpu5" in closed.reason


def test_a_failure_that_lies_ahead_says_nothing_yet() -> None:
    assert end(PartFates([fail(9)]), 8) is None


@pytest.mark.parametrize(
    "failure",
    [fail(9, place="gpu4"), fail(9, node="n2"), fail(9, fault="nic.errors"), fail(-3), fail(31)],
    ids=["another part", "another node", "a fault of something else", "before it", "after the horizon"],
)
def test_another_failure_does_not(failure: PartFailure) -> None:
    fates = PartFates([failure], measured_days={"w1": 30})
    assert end(fates, 29) is None
    assert end(fates, 31) == ("wrong", None)


def test_a_failure_on_the_same_day_was_not_foreseen() -> None:
    assert end(PartFates([fail(0.5)]), 2) == ("cannot tell", None)


def test_the_part_is_followed_into_another_node() -> None:
    moved = {"n1": [hold("n1", "gpu5", "S1"), hold("n1", "gpu4", "S7")], "n2": [hold("n2", "gpu0", "S1", since=5)]}
    assert end(PartFates([fail(9, node="n2", place="gpu0")], moved), 10) == ("right", 9.0)


def test_a_failure_of_the_part_that_came_after_it_is_not_its_own() -> None:
    exchanged = {"n1": [hold("n1", "gpu5", "S1", until=3), hold("n1", "gpu5", "S9", since=3)]}
    assert end(PartFates([fail(9)], exchanged), 10) == ("overtaken", None)


def test_new_firmware_or_a_repair_overtakes_it() -> None:
    assert end(PartFates(holders={"n1": [hold("n1", "gpu5", "S1", until=3)]}), 4) == ("overtaken", None)


def test_a_long_absence_for_another_reason_overtakes_it_and_a_restart_does_not() -> None:
    restart, drain = ServiceAbsence(day(2), (), day(2.1)), ServiceAbsence(day(5), (), None)
    assert end(PartFates(absences={"n1": [restart]}), 20) is None
    assert end(PartFates(absences={"n1": [restart, drain]}), 5.5) is None
    assert end(PartFates(absences={"n1": [restart, drain]}), 7) == ("overtaken", None)


def test_the_failure_that_took_the_node_out_comes_first() -> None:
    fates = PartFates([fail(5)], absences={"n1": [ServiceAbsence(day(5.01), (), day(9))]})
    assert end(fates, 20) == ("right", 5.0)


def test_who_was_not_measured_is_not_said_to_be_well() -> None:
    assert end(PartFates(measured_days={"w1": 23}), 31) == ("cannot tell", None)
    assert end(PartFates(measured_days={"w1": 24}), 31) == ("wrong", None)


def test_a_warning_of_the_node_is_proved_by_any_of_its_parts() -> None:
    assert end(PartFates([fail(9, place="gpu2")]), 10, warn(place="", serial="NODE")) == ("right", 9.0)


def test_a_warning_whose_rule_is_gone_is_not_judged() -> None:
    closed = close_warning(warn(), None, PartFates(), day(1))
    assert closed is not None
    assert closed.outcome == "cannot tell"
