"""The evidence above which a part is named follows from healthy parts in past weeks, and from a budget of alarms."""

from __future__ import annotations

import numpy as np
import pytest

from assay.decide.trends.part_findings import PartSearch
from assay.model.specs.trend_rules import ChangeDetector

WEEKS = 12


def learn(
    *scores: float,
    weeks: int = WEEKS,
    nodes: int = 1000,
    racks: tuple[str, ...] = (),
    failed: int = 0,
    budget: float = 0.1,
) -> tuple[float, bool]:
    """Return the threshold by the highest score that each part of 1,000 had in the last four weeks."""
    search = PartSearch(0, range(weeks), ChangeDetector(alarms_per_1000_node_days=budget), False, {})
    past, healthy = np.zeros((weeks, nodes)), np.arange(nodes) >= failed
    past[:1, : len(scores)] = scores
    return search._learn(past, healthy, racks or ("",) * nodes, nodes)


def test_the_budget_says_how_many_alarms_there_may_be() -> None:
    falling = tuple(10 - number / 4 for number in range(20))
    assert learn(*falling) == (pytest.approx(falling[8] + np.log10(9 / 8.4)), True), "0.1 a day in 84 days are 8"
    assert learn(*falling, budget=0.2)[0] == pytest.approx(falling[16] + np.log10(17 / 16.8))


def test_where_the_budget_is_less_than_one_alarm_the_fifth_tells_how_often_they_come() -> None:
    assert learn(9, 8, 7, 6, 5, 4.5, nodes=40)[0] == pytest.approx(5 + np.log10(5 / (0.1 * 0.04 * 84)))


@pytest.mark.parametrize(("scores", "threshold"), [((3.0,) * 20, 4.3), ((90.0,) * 20, 12.0)])
def test_it_stays_within_bounds(scores: tuple[float, ...], threshold: float) -> None:
    assert learn(*scores) == (threshold, True)


def test_a_short_history_teaches_nothing() -> None:
    assert learn(*[9.0] * 20, weeks=2) == (4.3, False)


def test_only_healthy_parts_teach_it_and_a_rack_that_moves_as_a_whole_is_one_alarm() -> None:
    scores = tuple(10 - number / 4 for number in range(20))
    assert learn(*scores, failed=3)[0] == pytest.approx(scores[11] + np.log10(9 / 8.4))
    racks = ("r1",) * 5 + tuple(f"q{number}" for number in range(995))
    assert learn(*scores, racks=racks)[0] == pytest.approx(scores[12] + np.log10(9 / 8.4))
