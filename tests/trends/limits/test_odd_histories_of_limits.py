"""Limits are judged right where units or limits change, parts differ, values are wild, or the future is there."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from trends.planted_history import PlantedReading, damage_file, keep_planted

from assay.model.errors import AssayError
from assay.trends.limits import limit_profiles
from assay.trends.limits.limit_review import ReviewedLimit, review_limits
from assay.trends.limits.limit_tables import LimitQuestion
from assay.trends.missed.service_failures import ServiceFailure, ServiceLosses

START, DAYS, NODES = datetime(2026, 3, 1, 6, tzinfo=UTC), 46, 34
NO_LOSSES = ServiceLosses([], [])
Change = Callable[[int, int, PlantedReading], PlantedReading]


def list_readings(change: Change) -> Iterator[PlantedReading]:
    """Yield a temperature a node and day, between 58 and 62 °C, changed by day and node."""
    for number in range(DAYS):
        for node in range(NODES):
            value = 60 + (node * 7 + number * 11) % 5 - 2
            one = PlantedReading(
                START + timedelta(days=number), f"n{node:02}", name="gpu_temperature", value=value, at_most=85.0
            )
            yield change(number, node, one)


def review(home: Path, readings: Iterable[PlantedReading], days: float = DAYS) -> ReviewedLimit:
    keep_planted(home, readings)
    return ask(home, days)


def ask(home: Path, days: float = DAYS) -> ReviewedLimit:
    (one,) = ask_all(home, days, NO_LOSSES)
    return one


def ask_all(
    home: Path, days: float, losses: ServiceLosses, skipped: Callable[[AssayError], None] = lambda _: None
) -> list[ReviewedLimit]:
    specs = {f"n{node:02}": "hgx" for node in range(NODES)}
    as_of = START + timedelta(days=days - 1, hours=1)
    return review_limits(LimitQuestion(home, as_of, 90, specs, losses), skipped)


def test_readings_in_another_unit_are_left_out(tmp_path: Path) -> None:
    def change(number: int, _: int, one: PlantedReading) -> PlantedReading:
        return one if number >= 30 else replace(one, unit="K", value=one.value + 273, at_most=358.0)

    one = review(tmp_path, list_readings(change))
    assert (one.behaviour, one.profile.days, one.profile.limit.unit) == ("never", 16 * NODES, "°C")


def test_the_newest_limit_is_judged_on_all_days(tmp_path: Path) -> None:
    def change(number: int, _: int, one: PlantedReading) -> PlantedReading:
        return replace(one, value=75 if number == 10 else one.value, at_most=85 if number < 30 else 70)

    one = review(tmp_path, list_readings(change))
    assert (one.profile.limit.value, one.profile.record.alarms, one.profile.fired_days) == (70, NODES, NODES)


def test_a_limit_that_differs_between_parts_gets_no_suggestion(tmp_path: Path) -> None:
    at = START + timedelta(days=5)
    failed = ServiceLosses([], [ServiceFailure("n00", "gpu0", "gpu.xid.79", START, at, at, at)])
    for apart in (0, 1):
        home = tmp_path / str(apart)
        keep_planted(
            home, list_readings(lambda number, node, one, apart=apart: replace(one, at_most=200.0 + apart * node))
        )
        (one,) = ask_all(home, DAYS, failed)
        assert (one.profile.varies, one.suggestion is None) == (bool(apart), bool(apart))


@pytest.mark.parametrize("wild", [math.nan, math.inf])
def test_values_that_are_no_numbers_do_not_count(tmp_path: Path, wild: float) -> None:
    one = review(
        tmp_path, list_readings(lambda number, node, one: replace(one, value=wild if node == 3 else one.value))
    )
    assert (one.behaviour, one.profile.parts) == ("never", NODES - 1)


def test_measurements_of_no_node_are_judged_too(tmp_path: Path) -> None:
    readings = [
        PlantedReading(
            START + timedelta(days=number), "", "leaf1", name="spread", value=9, at_most=5, pool="fabric/compute"
        )
        for number in range(DAYS)
    ]
    one = review(tmp_path, readings)
    assert (one.behaviour, one.profile.limit.specs) == ("always", ("fabric",))


def test_several_readings_a_day_count_as_one_day_with_the_worst_value(tmp_path: Path) -> None:
    def repeat() -> Iterator[PlantedReading]:
        for one in list_readings(lambda number, node, one: one):
            yield one
            noon = replace(one, at=one.at + timedelta(hours=6), value=90 if one.node == "n03" else one.value)
            yield noon

    one = review(tmp_path, repeat(), days=DAYS + 1)
    assert (one.profile.days, one.profile.fired_days, one.profile.record.alarms) == (DAYS * NODES, DAYS, 1)


def test_later_days_change_no_earlier_answer(tmp_path: Path) -> None:
    hot = list_readings(lambda number, node, one: replace(one, value=99 if number > 38 else one.value, at_most=200.0))
    keep_planted(tmp_path / "all", hot)
    for folder in sorted((tmp_path / "all" / "measurements").iterdir())[:36]:
        shutil.copytree(folder, tmp_path / "then" / "measurements" / folder.name)
    for folder in sorted((tmp_path / "all" / "outcomes").iterdir())[:36]:
        shutil.copytree(folder, tmp_path / "then" / "outcomes" / folder.name)
    assert ask(tmp_path / "all", days=36).as_json() == ask(tmp_path / "then", days=36).as_json()
    assert ask(tmp_path / "all").as_json() != ask(tmp_path / "then").as_json()


def test_one_failure_that_a_tighter_limit_foresees_may_be_chance(tmp_path: Path) -> None:
    def plant() -> Iterator[PlantedReading]:
        for one in list_readings(lambda number, node, one: one):
            is_warm = one.node == "n00" and START + timedelta(days=10) <= one.at < START + timedelta(days=15)
            yield replace(one, value=75 if is_warm else one.value, at_most=100)
            yield replace(one, name="another_temperature", at=one.at + timedelta(minutes=1))

    keep_planted(tmp_path, plant())
    at = START + timedelta(days=15)
    failure = ServiceFailure("n00", "gpu0", "gpu.xid.79", START, at, at, at + timedelta(hours=5))
    found = {one.profile.limit.name: one.suggestion for one in ask_all(tmp_path, DAYS, ServiceLosses([], [failure]))}
    heat = found["gpu_temperature"]
    assert heat is not None
    assert (heat.record.foreseen, heat.record.right, heat.record.wrong) == (1, 1, 0)
    assert heat.chance == pytest.approx(30 / (NODES * DAYS)), "one part in so many fails within a month"
    assert not heat.is_better


def test_a_limit_that_the_sample_misses_is_judged_by_its_alarms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limit_profiles, "NODES_IN_BLOCK", 2)
    monkeypatch.setattr(limit_profiles, "SAMPLED_NODES", 4)
    readings = list_readings(lambda _, node, one: replace(one, name="rare", value=99) if node == 7 else one)
    keep_planted(tmp_path, readings)
    found = {one.profile.limit.name: one for one in ask_all(tmp_path, DAYS, NO_LOSSES)}
    assert (found["rare"].behaviour, found["rare"].profile.days, found["rare"].profile.record.alarms) == ("works", 0, 1)
    assert found["gpu_temperature"].profile.parts == 4, "the first two nodes, and two farther on"


def test_damaged_files_are_left_out_and_named(tmp_path: Path) -> None:
    keep_planted(tmp_path, list_readings(lambda number, node, one: one))
    places = ("measurements/day=2026-03-05", "measurements/day=2026-03-06", "outcomes/day=2026-04-10")
    damaged = [damage_file(tmp_path / place, is_cut=at > 0) for at, place in enumerate(places)]
    told: list[AssayError] = []
    (one,) = ask_all(tmp_path, DAYS, NO_LOSSES, told.append)
    assert one.profile.days == (DAYS - 2) * NODES
    assert {error.where for error in told} == {str(file) for file in damaged}
    assert all("delete it" in error.fix for error in told)
