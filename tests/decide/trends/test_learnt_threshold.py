"""The score above which a part is named follows from healthy parts in past weeks, and from a budget of alarms."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pytest

from assay.decide.trends.change_scores import ChangeScores, SeriesCount
from assay.decide.trends.series import ChangeScore
from assay.decide.trends.warning_threshold import find_change_warnings
from assay.model.specs.trend_rules import ChangeDetector

_TABLES = """
CREATE TABLE past_scores (node VARCHAR, subject VARCHAR, name VARCHAR, worse DOUBLE, worse_before DOUBLE,
  worse_two DOUBLE, peers INT, is_of_rack BOOL);
CREATE TABLE failures (node VARCHAR, subject VARCHAR);
CREATE TABLE scores (place INT, measure INT, worse DOUBLE);
CREATE TABLE places (place INT, node VARCHAR, subject VARCHAR);
CREATE TABLE measures (measure INT, name VARCHAR, unit VARCHAR);
INSERT INTO measures VALUES (1, 't', 'C')
"""


class PastScores(ChangeScores):
    """Scores of past weeks of a fleet of 1,000 nodes, and nothing of today."""

    def count(self) -> SeriesCount:
        return SeriesCount(1000, 0, 1000)

    def find_above(self, threshold: float) -> list[ChangeScore]:
        return []


@pytest.fixture
def database() -> duckdb.DuckDBPyConnection:
    database = duckdb.connect()
    database.execute(_TABLES)
    return database


def keep(database: duckdb.DuckDBPyConnection, *scores: float, peers: int = 30, of_rack: bool = False) -> None:
    for number, score in enumerate(scores):
        row = [f"n{number}", "gpu0", "t", score, 0.0, 0.0, peers, of_rack]
        database.execute("INSERT INTO past_scores VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)


def learn(database: duckdb.DuckDBPyConnection, weeks: int = 8, **settings: float) -> tuple[float, bool]:
    detector = ChangeDetector.model_validate(settings)
    found = find_change_warnings(PastScores(database, 100, detector), weeks)
    return found.threshold, found.is_learned


def test_the_budget_says_how_many_past_scores_may_be_above(database: duckdb.DuckDBPyConnection) -> None:
    keep(database, 12, 11, 10, 9, 8, 7)
    assert learn(database) == (9, True), "0.1 alarms a day, seen on 4 of 7 days in 8 weeks, are 3"
    assert learn(database, weeks=3) == (11, True)
    assert learn(database, alarms_per_1000_node_days=0.01) == (12, True)


@pytest.mark.parametrize(("scores", "threshold"), [([7.0] * 3, 6), ([90.0] * 9, 24)])
def test_it_stays_within_bounds(database: duckdb.DuckDBPyConnection, scores: Sequence[float], threshold: float) -> None:
    keep(database, *scores)
    assert learn(database) == (threshold, True)


def test_a_short_history_teaches_nothing(database: duckdb.DuckDBPyConnection) -> None:
    keep(database, 20, 20, 20, 20)
    assert learn(database, weeks=2) == (8, False)


def test_only_healthy_parts_with_peers_teach_it(database: duckdb.DuckDBPyConnection) -> None:
    keep(database, 20, 20, 20, 20, 20, 20, of_rack=True)
    keep(database, 20, 20, 20, 20, 20, 20, peers=19)
    assert learn(database) == (6, True), "racks that moved as a whole, and parts with too few peers"
    keep(database, 15, 14, 13, 12, 11, 10, 9)
    database.execute("INSERT INTO failures VALUES ('n0', 'gpu0')")
    assert learn(database) == (11, True), "one has failed"
    database.execute("INSERT INTO places VALUES (1, 'n1', 'gpu0'), (2, 'n2', 'gpu0')")
    database.execute("INSERT INTO scores VALUES (1, 1, 9.0), (2, 1, 5.0)")
    assert learn(database) == (10, True), "one gets worse today"
