"""What is nearest to its limit: per pool and measurement, over the parts' newest values."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from assay.ledger.history.strain_queries import query_course, query_strain
from assay.model.outcome import Measurement, Outcome

VOLTS = "suites/production/test_bmc.py::test_voltage"


def measured(node: str, name: str, value: float, low: float | None, high: float | None) -> Outcome:
    one = Measurement(name, value, "V", low, high, "specs/x.yaml:9")
    return Outcome(VOLTS, f"h100-a/{node}", node, "pass", phases=("production",), measurements=(one,))


def test_the_nearest_part_is_judged_by_its_newest_value(reports, said) -> None:
    reports.kept([said(node="n1", value=84.0), said(node="n2", value=60.0)], timedelta(hours=3))
    reports.kept([said(node="n1", value=50.0), said(node="n2", value=70.0)], timedelta(hours=1))
    with reports.asked() as history:
        ((one,), total) = query_strain(history)
    assert total == 1
    assert (one.pool, one.name, one.unit, one.parts) == ("h100-a", "gpu_temperature", "°C", 2)
    assert (one.low, one.middle, one.high) == (50.0, 65.0, 84.0)
    assert [(part.node, part.value, part.at_most) for part in one.nearest] == [("n2", 70.0, 85.0), ("n1", 50.0, 85.0)]
    assert one.nearest[0].strain == pytest.approx(70 / 85)
    assert one.nearest[0].source == "specs/x.yaml:3"


@pytest.mark.parametrize(
    ("low", "high", "value", "strain"),
    [(11.2, None, 11.2, 1.0), (None, 12.6, 12.6, 1.0), (11.2, 12.6, 12.0, 12 / 12.6), (11.2, None, 5.6, 2.0)],
)
def test_a_limit_is_reached_from_either_side(reports, low, high, value, strain) -> None:
    reports.kept([measured("n1", "volts", value, low, high)])
    with reports.asked() as history:
        ((one,), _) = query_strain(history)
    assert one.nearest[0].strain == pytest.approx(strain)


def test_what_has_no_limit_or_no_number_is_left_out(reports) -> None:
    reports.kept([measured("n1", "volts", 12.0, None, None), measured("n2", "volts", float("nan"), 11.0, None)])
    with reports.asked() as history:
        assert query_strain(history) == ([], 0)


def test_pools_and_checks_restrict(reports, said) -> None:
    reports.kept([said(value=60.0), measured("n1", "volts", 12.0, 11.0, None)])
    with reports.asked() as history:
        assert {one.name for one in query_strain(history, "h100-a")[0]} == {"gpu_temperature", "volts"}
        assert query_strain(history, "other") == ([], 0)
        assert [one.name for one in query_strain(history, check="*volt*")[0]] == ["volts"]


def test_of_many_the_most_strained_are_shown_and_all_are_counted(reports) -> None:
    volts = (Measurement(f"volts{number}", 12.0, "V", 11.0 - number / 10, None, "") for number in range(9))
    reports.kept([replace(measured("n1", "volts", 12.0, None, None), measurements=tuple(volts))])
    with reports.asked() as history:
        shown, total = query_strain(history, most=3)
    assert ([one.name for one in shown], total) == (["volts0", "volts1", "volts2"], 9)


def test_a_course_has_one_value_an_hour_the_last(reports, said) -> None:
    for minutes, value in ((170, 50.0), (110, 60.0), (100, 61.0), (5, 70.0)):
        reports.kept([said(value=value)], timedelta(minutes=minutes))
    with reports.asked() as history:
        ((one,), _) = query_strain(history)
        name = (one.check, one.name, one.nearest[0].subject)
        assert [value for _, value in query_course(history, [name], days=1)[name]] == [50.0, 61.0, 70.0]
        assert query_course(history, [], days=1) == {}
