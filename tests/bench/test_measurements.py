"""What is judged of a figure: CPU time as on the machine of the bounds, everything else as it is."""

from __future__ import annotations

import pytest

from bench.measurement import Measurement
from bench.pace import measure_pace
from bench.table import format_table


@pytest.mark.parametrize(
    ("unit", "pace", "holds"),
    [
        ("CPU s", 1.0, False),
        ("CPU s", 2.0, True),
        ("CPU µs", 0.5, False),
        ("s", 2.0, False),
        ("MB", 2.0, False),
        ("×", 2.0, False),
    ],
)
def test_only_cpu_time_is_judged_by_the_pace_of_the_machine(unit: str, pace: float, holds: bool) -> None:
    assert Measurement("a start", 3.0, unit, "at most", 2.0, pace=pace).holds == holds


def test_a_figure_that_was_scaled_is_shown_as_it_was_measured_too() -> None:
    taken = Measurement("a start", 3.0, "CPU s", "at most", 2.0, pace=2.0)
    assert {"figure": 3.0, "pace": 2.0, "judged": 1.5}.items() <= taken.as_json().items()
    assert "1.5 CPU s   at most 2 CPU s  (3 here)" in format_table([taken])


def test_a_machine_has_a_pace() -> None:
    assert measure_pace() > 0
