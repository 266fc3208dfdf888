"""Units are checked where they are written: GB/s is not Gb/s, and Gbps is neither."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.declare.check import check_repository
from assay.declare.suite_source import MeasureCall, find_measure_calls
from assay.model.specs.node.node_spec import MetricLimit
from assay.model.units import READING_SUFFIXES, UNITS, convert_unit, describe_unit_fix, find_unit_in_name, suggest_units
from tests.declare.rules.cases.measurement_limits import RATE, RATE_TEST
from tests.support.places import ROOT

Write = Callable[[Mapping[str, "str | None"]], Path]
SUITES = ROOT / "suites"
units = st.sampled_from(sorted(UNITS))


@pytest.mark.parametrize(
    ("written", "right"),
    [
        ("Gbps", ["Gb/s"]),
        ("GBps", ["GB/s"]),
        ("MBps", ["MB/s"]),
        ("Gbit/s", ["Gb/s"]),
        ("gb/s", ["Gb/s", "GB/s"]),
        ("gbps", ["Gb/s", "GB/s"]),
        ("C", ["°C"]),
        ("℃", ["°C"]),
        ("RPM", ["rpm"]),
        ("gib", ["GiB"]),
        ("GFLOPS", ["Gflop/s"]),
        ("percent", ["%"]),
        ("watts", ["W"]),
    ],
)
def test_a_look_alike_is_refused_with_the_right_spelling(written: str, right: list[str]) -> None:
    with pytest.raises(ValueError, match="no unit that assay knows"):
        MetricLimit(value=1, unit=written, source="us")
    assert suggest_units(written) == right
    assert all(one in describe_unit_fix(written) for one in right)


def test_what_is_near_no_unit_is_told_all_of_them() -> None:
    assert describe_unit_fix("bananas") == f"use one of {', '.join(UNITS)}"


@given(units)
def test_every_unit_of_the_vocabulary_is_taken_as_it_is(unit: str) -> None:
    assert MetricLimit(value=1, unit=unit, source="us").unit == unit
    assert suggest_units(unit) == [unit]


@given(st.floats(1e-3, 1e6), units, units)
def test_converting_there_and_back_gives_the_same_figure(value: float, unit: str, other: str) -> None:
    there = convert_unit(value, unit, other)
    if UNITS[unit].dimension != UNITS[other].dimension:
        assert there is None
    else:
        assert there is not None
        assert convert_unit(there, other, unit) == pytest.approx(value)


def test_fifty_gigabytes_a_second_are_four_hundred_gigabits() -> None:
    assert convert_unit(50, "GB/s", "Gb/s") == 400
    assert convert_unit(6500, "MB/s", "GB/s") == 6.5
    assert convert_unit(1, "GiB", "MiB") == 1024


def test_the_names_of_readings_end_in_their_units() -> None:
    assert find_unit_in_name("bus_bandwidth_gb_s") == "GB/s"
    assert find_unit_in_name("rate_gbps") == "Gb/s"
    assert find_unit_in_name("limit_w") == "W"
    assert find_unit_in_name("rpm") == "rpm"
    assert find_unit_in_name("replays") == ""
    assert set(READING_SUFFIXES.values()) <= set(UNITS)


def _measured(line: str) -> MeasureCall:
    (found,) = find_measure_calls(ast.walk(ast.parse(line)), "suites/test_x.py")
    return found


@pytest.mark.parametrize(
    ("line", "unit", "limits"),
    [
        ('measure("x", hca.rate_gbps, at_least=limits.rate)', "Gb/s", ("rate",)),
        ('measure("x", since_last_pass(a.b.t_s), at_most=limits.t)', "s", ("t",)),
        ('measure("x", min(fan.rpm for fan in fans), at_least=limits.f)', "rpm", ("f",)),
        ('measure("x", max([fan.rpm for fan in fans]), at_least=limits.f)', "rpm", ("f",)),
        ('measure("x", psu.input_v, at_least=limits.low, at_most=limits.high)', "V", ("low", "high")),
        ('measure("x", nvme.size_bytes / 1e9, at_least=limits.size, unit="GB")', "GB", ("size",)),
        ('measure("x", nvme.size_bytes / 1e9, at_least=limits.size)', "", ("size",)),
        ('measure("x", len(gpus), equals=spec.gpus.count)', "", ()),
        ("measure()", "", ()),
    ],
)
def test_the_unit_of_a_measure_is_in_its_reading_s_name_or_said(line: str, unit: str, limits: tuple[str, ...]) -> None:
    assert (_measured(line).unit, _measured(line).limits) == (unit, limits)


def test_every_number_that_our_suites_hold_to_a_limit_has_a_unit() -> None:
    found = [
        one
        for file in sorted(SUITES.rglob("test_*.py"))
        for one in find_measure_calls(ast.walk(ast.parse(file.read_text())), file.name)
    ]
    assert [f"{one.file}:{one.line} {one.name}" for one in found if one.limits and not one.unit] == []
    assert sum(len(one.limits) for one in found) >= 30


@pytest.mark.parametrize(
    ("limit", "fix"),
    [
        ("value: 50, unit: GB/s", "write {value: 400, unit: Gb/s}, or measure in GB/s"),
        ("value: 400000, unit: Mb/s", "write {value: 400, unit: Gb/s}, or measure in Mb/s"),
        ("value: 400, unit: W", "W is a power and Gb/s is a data rate: read another limit, or correct the unit"),
    ],
)
def test_a_limit_in_another_unit_is_told_the_figure_in_the_check_s(limit: str, fix: str, fleet_with: Write) -> None:
    node = RATE.replace("value: 400, unit: Gb/s", limit)
    (found,) = check_repository(fleet_with({"specs/node.yaml": node, "suites/test_heat.py": RATE_TEST})).problems
    assert (found.code, found.fix) == ("ASY0054", fix)
    assert "suites/test_heat.py:10 measures in Gb/s" in found.message
