"""What is judged of a figure: CPU time as on the machine of the bounds, everything else as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from bench.kept import compare, keep, read_kept
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


@pytest.mark.parametrize(
    ("side", "figure", "spread", "is_lost"),
    [
        ("at most", 1.2, 0.0, True),
        ("at most", 1.2, 0.3, False),
        ("at most", 0.8, 0.0, False),
        ("at least", 0.8, 0.0, True),
    ],
)
def test_a_figure_worse_than_the_kept_one_is_a_loss(
    tmp_path: Path, side: Literal["at most", "at least"], figure: float, spread: float, is_lost: bool
) -> None:
    file = tmp_path / "figures.tsv"
    former, other = Measurement("a start", 1.0, "×", side, 9.0), Measurement("a sync", 5.0, "s", "at most", 9.0)
    keep([former, other], file)
    (again,) = compare([Measurement("a start", figure, "×", side, 9.0, spread=spread, load=3.0)], read_kept(file))
    assert again.is_lost == is_lost
    assert (": lost" in format_table([again])) == is_lost
    keep([again], file)
    assert {what: row["figure"] for what, row in read_kept(file).items()} == {"a start": f"{figure:g}", "a sync": "5"}


def test_a_machine_has_a_pace() -> None:
    assert measure_pace() > 0
