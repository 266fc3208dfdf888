"""The middle values of the last days are those of a sorted list, whichever days have values."""

from __future__ import annotations

import random

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.decide.trends.days import DAYS_SEEN, OWN, RECENT, list_compared_days
from assay.decide.trends.series import LATER, write_counts, write_middles


def find_middles(values: list[float | None]) -> tuple[float | None, float | None]:
    """Return the lower and the upper middle of the values that are there."""
    there = sorted(value for value in values if value is not None)
    return (there[(len(there) - 1) // 2], there[len(there) // 2]) if there else (None, None)


@pytest.mark.parametrize("present", [0.3, 0.7, 1.0])
def test_they_are_those_of_a_sorted_list(present: float) -> None:
    draw = random.Random(present)
    rows = [
        [
            draw.choice([draw.gauss(0, 1), float(draw.randint(-2, 2))]) if draw.random() < present else None
            for _ in LATER
        ]
        for _ in range(200)
    ]
    with duckdb.connect() as database:
        columns = ", ".join(f"v{at} DOUBLE" for at in LATER)
        database.execute(f"CREATE TABLE days (number INT, {columns})")
        appender = database.appender("days")
        appender.append_rows([at, *row] for at, row in enumerate(rows))
        appender.flush()
        found = ", ".join(f"low_{seen}, high_{seen}" for seen in range(DAYS_SEEN))
        query = write_middles(f"({write_counts('days')})", "number")
        said = database.execute(f"SELECT {found} FROM {query} ORDER BY number").fetchall()
    for row, middles in zip(rows, said, strict=True):
        values = dict(zip(LATER, row, strict=True))
        for seen, places in enumerate(RECENT):
            low, high = middles[2 * seen : 2 * seen + 2]
            wanted = find_middles([values[at] for at in places])
            assert low == wanted[0]
            assert wanted[0] is None or high == wanted[1]


@given(st.integers(15_000, 25_000))
def test_a_series_own_days_are_even_whatever_day_is_judged(day: int) -> None:
    own = list_compared_days(day)[: OWN.stop]
    assert {one % 2 for one in own} == {0}
    assert (day - own[0], day - own[-1]) in ((58, 20), (59, 21))
