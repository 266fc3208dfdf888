"""What only grows until it is reset is judged by its growth: no reset is a trend, and more growth is one."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assay.decide.trends.measured_days import Grid, Measured
from assay.decide.trends.measurement_tables import TrendFiles, open_tables
from assay.decide.trends.part_evidence import is_counter
from assay.decide.trends.part_findings import PartSearch
from assay.decide.trends.trend_answer import find_trends
from assay.model.specs.trend_rules import ChangeDetector
from tests.decide.trends.planted_fleet import PlantedFleet, name_nodes, node_name

DAYS, NODES = 100, 30
RATES = {"busy": 5_000.0, "rare": 0.15}
"""What a counter grows in a day: an error that comes all the time, and one that comes once a week."""


MORE_BITS = [pytest.param(bits, rate, marks=pytest.mark.slow) for bits, rate in ((16, 700.0), (32, 5e7))]


@pytest.fixture
def fleet(tmp_path: Path) -> PlantedFleet:
    return PlantedFleet(tmp_path, nodes=NODES, days=DAYS, limits=(None, None))


def count(
    fleet: PlantedFleet,
    rate: float,
    *,
    more: Mapping[int, float] = {},
    starts: Mapping[tuple[int, int], float] = {},
    end: float = 2.0**64,
    stands: bool = False,
    spread: float = 0.1,
) -> None:
    """Let a counter of each node grow. `more`: so many times as fast from day 80 on. `starts`: anew from here.

    `end`: where it wraps, or `stands`. `spread`: by how much some nodes are busier than others (of the logarithm).
    """
    chance = random.Random(11)
    for node in range(fleet.nodes):
        own, value = rate * chance.lognormvariate(0, spread), chance.uniform(20, 50) * rate // 1
        for day in range(fleet.days):
            grown = own * (more.get(node, 1.0) if day >= 80 else 1.0)
            value += (
                sum(chance.random() < grown / 20 for _ in range(20))
                if grown < 10
                else chance.gauss(1, 0.1) * grown // 1
            )
            value = starts.get((node, day), value)
            value = min(value, end) if stands else value % end
            fleet.say(node, day, value, name="replays", unit="count")


def ask_soon(fleet: PlantedFleet) -> set[str]:
    """Return whom a question names that is asked a few days after what happened."""
    return set(name_nodes(fleet.ask(day=88)))


@pytest.mark.parametrize("kind", [pytest.param("busy", marks=pytest.mark.slow), "rare"])
def test_a_reset_after_a_reboot_is_no_trend(fleet: PlantedFleet, kind: str) -> None:
    count(fleet, RATES[kind], starts={(4, 85): 0.0, (5, 82): 0.0, (6, 60): 0.0})
    assert ask_soon(fleet) == set()


def test_the_whole_fleet_that_restarts_on_one_day_is_no_trend(fleet: PlantedFleet) -> None:
    count(fleet, RATES["busy"], starts={(node, 82): 0.0 for node in range(0, NODES, 3)})
    assert ask_soon(fleet) == set()


@pytest.mark.parametrize("bits", [pytest.param(32, marks=pytest.mark.slow), 64])
def test_a_counter_that_wraps_is_no_trend(fleet: PlantedFleet, bits: int) -> None:
    count(fleet, 2.0**bits / 135, end=2.0**bits)
    assert ask_soon(fleet) == set()


@pytest.mark.parametrize(("bits", "rate"), [pytest.param(4, 0.15, marks=pytest.mark.slow), (8, 3.0), *MORE_BITS])
def test_a_counter_that_stands_at_its_last_bit_is_no_trend(fleet: PlantedFleet, bits: int, rate: float) -> None:
    count(fleet, rate, end=2.0**bits - 1, stands=True, starts={(9, 60): 0.0})
    assert ask_soon(fleet) == set()


@pytest.mark.parametrize("kind", [pytest.param("busy", marks=pytest.mark.slow), "rare"])
def test_an_exchanged_part_brings_its_own_count(fleet: PlantedFleet, kind: str) -> None:
    rate = RATES[kind]
    count(fleet, rate, starts={(3, 82): rate * 4_000 // 1, (4, 70): 0.0})
    for node in range(NODES):
        fleet.hold(node, until=82 if node == 3 else None)
    fleet.hold(3, since=82, serial="S900")
    assert ask_soon(fleet) == set()


def test_a_part_that_comes_back_goes_on_from_its_own_count(fleet: PlantedFleet) -> None:
    rate = RATES["busy"]
    count(fleet, rate, starts={(3, 60): rate * 900, (3, 83): rate * 95, (4, 70): 0.0})
    for node in range(NODES):
        fleet.hold(node, until=60 if node == 3 else None)
    fleet.hold(3, since=60, until=83, serial="S900")
    fleet.hold(3, since=83)
    assert ask_soon(fleet) == set()


@pytest.mark.parametrize("kind", [pytest.param("busy", marks=pytest.mark.slow), "rare"])
def test_wild_readings_and_lost_days_are_no_growth(fleet: PlantedFleet, kind: str) -> None:
    count(fleet, RATES[kind], starts={(9, 60): 0.0})
    start = fleet.rows[0][0]
    wild = {(3, 83), (4, 86), (5, 91)}
    fleet.rows = [
        (*row[:4], row[4] * 1_000 + 4_000, *row[5:]) if (int(row[1][1:]), (row[0] - start).days) in wild else row
        for row in fleet.rows
        if (row[0] - start).days not in (81, 87) and not (row[1] == node_name(6) and 60 <= (row[0] - start).days < 86)
    ]
    assert ask_soon(fleet) == set()


@pytest.mark.parametrize(("kind", "factor"), [pytest.param("busy", 6.0, marks=pytest.mark.slow), ("rare", 60.0)])
def test_a_counter_that_grows_faster_is_named_by_its_growth(fleet: PlantedFleet, kind: str, factor: float) -> None:
    fleet.limits = (None, 1e6)
    count(fleet, RATES[kind], more={7: factor}, starts={(node, 65 + node): 0.0 for node in range(NODES)})
    (warning,) = fleet.ask()["warnings"]
    assert (warning["node"], warning["name"], warning["unit"]) == (node_name(7), "replays", "count/d")
    assert warning["to"] / max(warning["from"], RATES[kind] / 2) > factor / 3
    assert abs(warning["peers_change"]) < RATES[kind]
    assert warning["limit"] is None, "a limit of the count says nothing about its growth"


@pytest.mark.slow
def test_busy_parts_and_idle_ones_are_no_trend(fleet: PlantedFleet) -> None:
    count(fleet, RATES["busy"], spread=1.5)
    assert ask_soon(fleet) == set()


@pytest.mark.slow
def test_less_growth_is_no_trend(fleet: PlantedFleet) -> None:
    count(fleet, RATES["busy"], more={7: 0.02}, starts={(9, 60): 0.0})
    assert ask_soon(fleet) == set()


def test_wear_with_a_limit_that_never_falls_is_judged_by_its_level(fleet: PlantedFleet) -> None:
    fleet.limits = (None, 100.0)
    for node in range(NODES):
        for day in range(DAYS):
            worn = 0.05 * day + (0.8 * max(0, day - 80) if node == 7 else 0)
            fleet.say(node, day, float(round(20 + node / 10 + worn)), name="percentage_used", unit="percent")
    (warning,) = fleet.ask()["warnings"]
    assert (warning["node"], warning["limit"], warning["unit"]) == (node_name(7), 100.0, "percent")
    assert "reaches 100" in warning["because"]


def test_what_is_declared_counts_although_its_values_do_not_tell(fleet: PlantedFleet) -> None:
    fleet.limits = (None, 1e9)
    count(fleet, RATES["busy"], more={7: 9.0})
    words = dict(zip(*[iter(fleet.write(day=99))] * 2, strict=True))
    tables = TrendFiles(Path(words["--measurements"]))
    for counters, unit in (([], "count"), (["rep*"], "count/d")):
        with open_tables(tables, fleet.rows[-1][0]) as database:
            told = find_trends(database, fleet.rows[-1][0], ChangeDetector(counters=counters))
        assert {warning.score.unit for warning in told.warnings if warning.score.name == "replays"} == {unit}


@given(st.integers(0, 60), st.integers(0, 60), st.booleans())
@example(9, 0, False)
@example(10, 0, False)
@example(10, 0, True)
@example(10, 2, True)
@example(10, 3, False)
def test_what_falls_as_often_as_it_rises_is_no_counter(rises: int, falls: int, is_limited: bool) -> None:
    values = np.array([[*range(rises + 1), *(rises - 1 - fall for fall in range(falls))]], float)
    days, held = np.arange(values.shape[1], dtype=np.int32), np.zeros(values.shape, np.int16)
    told = is_counter(Grid(days, values, held, held), is_limited)
    assert told == (rises >= 10 and falls <= rises / 5 and not (is_limited and falls == 0))


def test_parts_that_teach_and_all_others_are_counted_in_one_unit() -> None:
    days = np.arange(90, dtype=np.int32)
    steps = np.where(np.arange(30) < 15, 1.0, 50.0)  # those that are not drawn grow in larger steps
    values = steps[:, None] * np.cumsum(np.ones((30, 90)), axis=1)
    whole = Grid(days, values, *(np.zeros(values.shape, np.int16) for _ in range(2)))
    drawn = Grid(days, values[:10], whole.segment[:10], whole.alike[:10])
    none, is_drawn = np.full(30, np.nan), np.arange(30) < 10
    measured = Measured("replays", "count", np.arange(30, dtype=np.int32), whole, drawn, is_drawn, none, none)
    recent, past = PartSearch(89, [], ChangeDetector(counters=["replays"]), False, {})._make_courses(measured)
    assert recent.is_counter
    assert recent.scale == past.scale == 1.0
