"""What is kept of past days changes no answer: each day it says what a whole evaluation says."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trends.peers.test_the_fleets_own_trends import DAYS, NODES, START, folder, note_node
from trends.planted_history import damage_file

from assay.decide.trends import day_columns
from assay.decide.trends.day_cache import KEPT_FILE
from assay.decide.trends.days import DAY_0, OWN, list_compared_days, list_kept_days
from assay.decide.trends.fleet_tables import open_fleet_tables
from assay.decide.trends.trend_answer import find_trends
from assay.ledger.history.parquet_files import history_folder, read_without_damaged
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.specs.trend_rules import ChangeDetector

__all__ = ["folder"]
LATE = START + timedelta(days=DAYS - 1, hours=16)
HEATS = st.lists(
    st.tuples(st.integers(0, NODES - 1), st.floats(20, 120, allow_nan=False), st.sampled_from([None, 60.0, 85.0])),
    max_size=40,
)


def ask(
    home: Path,
    kept: Path | None,
    counters: Sequence[str] = (),
    at: datetime = LATE,
    left_out: Collection[str] = (),
) -> str:
    ledger = Ledger.open(home / ".assay" / "ledger.sqlite")
    with open_fleet_tables(history_folder(home / "reports"), ledger, at, left_out) as database:
        return json.dumps(find_trends(database, at, ChangeDetector(counters=list(counters)), kept).as_json())


def run_again(home: Path, heats: list[tuple[int, float, float | None]]) -> None:
    """Add a run of today, with these readings and limits."""
    at = START + timedelta(days=DAYS - 1, hours=6)
    rows = [
        ("again", at.isoformat(), f"n{node:02}", f"h100-a/n{node:02}/gpu0", "suites/test_gpu.py::test_heat", 0,
         "gpu_temperature", heat, "C", None, limit, "", "")
        for node, heat, limit in heats
    ]  # fmt: skip
    day = home / "reports" / "history" / "measurements" / f"day={at.date()}"
    with duckdb.connect() as database:
        database.execute(
            f"CREATE TABLE t AS FROM read_parquet('{next(day.glob('r*.parquet'))}', hive_partitioning = false) LIMIT 0"
        )
        if rows:
            marks = ", ".join("?" for _ in rows[0])
            database.executemany(f"INSERT INTO t VALUES ({marks})", rows)
        database.execute(f"COPY t TO '{day / 'again.parquet'}'")


@pytest.fixture(scope="module")
def whole(folder: Path) -> str:
    """What a whole evaluation says."""
    return ask(folder, None)


@pytest.fixture(scope="module")
def home(folder: Path, whole: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the fleet that has kept what the days before today say."""
    home = tmp_path_factory.mktemp("again") / "fleet"
    shutil.copytree(folder, home)
    assert ask(home, home / "reports" / KEPT_FILE) == whole
    return home


def test_asked_again_it_says_what_a_whole_evaluation_says(folder: Path, home: Path) -> None:
    ask_both(folder, home, [(3, 110.0, 85.0), (3, 20.0, None), (9, 110.0, 60.0)], is_repaired=True)


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(heats=HEATS, is_repaired=st.booleans())
def test_whatever_is_read_again_it_says_what_a_whole_evaluation_says(
    folder: Path, home: Path, heats: list[Any], is_repaired: bool
) -> None:
    ask_both(folder, home, heats, is_repaired)


def ask_both(folder: Path, home: Path, heats: list[Any], is_repaired: bool) -> None:
    """Hold that an answer with what was kept is that of a whole evaluation."""
    run_again(home, heats)
    shutil.copytree(folder / ".assay", home / ".assay", dirs_exist_ok=True)
    if is_repaired:
        ledger = Ledger.open(home / ".assay" / "ledger.sqlite")
        note_node(ledger, "n07", "S901", "580.2", START + timedelta(days=DAYS - 1, hours=3))
        ledger.close()
    assert ask(home, home / "reports" / KEPT_FILE) == ask(home, None)


def note_folded_days(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets each day that is folded."""
    folded: list[int] = []
    fold = day_columns.DayColumns._fold
    monkeypatch.setattr(
        day_columns.DayColumns, "_fold", lambda self, days, *block: (folded.extend(days), fold(self, days, *block))
    )
    return folded


def test_only_days_that_changed_are_folded_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_again(home, [(3, 60.0, 85.0)])
    ask(home, home / "reports" / KEPT_FILE)
    folded = note_folded_days(monkeypatch)
    run_again(home, [(3, 70.0, 85.0)])
    ask(home, home / "reports" / KEPT_FILE)
    assert [(DAY_0 + timedelta(days=day)) for day in folded] == [LATE.date()]


@pytest.mark.slow
def test_each_day_says_what_a_whole_evaluation_of_that_day_says(folder: Path, tmp_path: Path) -> None:
    """Over ten days: a part is exchanged, a run comes late, a limit changes, a node is away, a file is repaired."""
    home = tmp_path / "fleet"
    shutil.copytree(folder, home)
    kept, days = home / "reports" / KEPT_FILE, home / "reports" / "history" / "measurements"
    coming = [days / f"day={(LATE - timedelta(days=ago)).date()}" for ago in range(9, -1, -1)]
    for day in coming:
        day.rename(tmp_path / day.name)
    said = set()
    for number, day in enumerate(coming):
        at = LATE - timedelta(days=9 - number)
        if number != 4:  # this one comes two days late
            (tmp_path / day.name).rename(day)
        if number == 2:
            ledger = Ledger.open(home / ".assay" / "ledger.sqlite")
            note_node(ledger, "n07", "S901", "580.2", at - timedelta(days=3))
            ledger.close()
        if number == 6:
            (tmp_path / coming[4].name).rename(coming[4])
        if number in (3, 7):
            change_run(coming[number - 2], "least(at_most, 60)", "node <> 'n05'")
        if number == 8:
            change_run(days / f"day={(at - timedelta(days=40)).date()}", "at_most", "value < 62")
        said.add(now := ask(home, kept, at=at))
        assert now == ask(home, None, at=at), number
    assert len(said) >= 3, "these days say different things"


def change_run(day: Path, at_most: str, kept: str) -> None:
    """Write a day's file anew with other limits, and without some rows."""
    [file] = day.glob("r*.parquet")
    rows = (
        f"SELECT * REPLACE ({at_most} AS at_most) FROM read_parquet('{file}', hive_partitioning = false) WHERE {kept}"
    )
    with duckdb.connect() as database:
        database.execute(f"CREATE TABLE t AS {rows}")
        database.execute(f"COPY t TO '{file}'")


@pytest.mark.parametrize("content", [pytest.param(b"", marks=pytest.mark.slow), b"no database"])
def test_a_kept_file_that_is_damaged_is_made_anew(folder: Path, whole: str, tmp_path: Path, content: bytes) -> None:
    kept = tmp_path / "kept.duckdb"
    kept.write_bytes(content)
    assert ask(folder, kept) == whole


def test_damaged_files_are_left_out_and_named_and_what_is_kept_stays(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged_home = tmp_path / "fleet"
    shutil.copytree(home, damaged_home)
    kept, days = damaged_home / "reports" / KEPT_FILE, damaged_home / "reports" / "history" / "measurements"
    damaged = [damage_file(days / f"day={(LATE - timedelta(days=ago)).date()}", is_cut=ago == 5) for ago in (5, 6)]
    folded, told = note_folded_days(monkeypatch), list[AssayError]()
    said = read_without_damaged(lambda left_out: ask(damaged_home, kept, left_out=left_out), told.append)
    assert {error.where for error in told} == {str(file) for file in damaged}
    assert len({*folded}) < DAYS / 2, "what was kept is not thrown away"
    for file in damaged:
        file.unlink()
    assert said == ask(damaged_home, None)


def test_an_older_day_that_comes_late_is_read(folder: Path, whole: str, tmp_path: Path) -> None:
    home = tmp_path / "fleet"
    shutil.copytree(folder, home)
    kept, day = home / "reports" / KEPT_FILE, (START + timedelta(days=DAYS - 3)).date()
    late = home / "reports" / "history" / "measurements" / f"day={day}"
    late.rename(tmp_path / late.name)
    without = ask(home, kept)
    (tmp_path / late.name).rename(late)
    assert ask(home, kept) == whole != without


def test_a_folder_that_cannot_be_written_costs_no_answer(folder: Path, whole: str, tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("a file where the folder should be")
    assert ask(folder, tmp_path / "reports" / "kept.duckdb") == whole


@pytest.mark.slow
def test_counters_that_are_declared_meanwhile_are_read_anew(folder: Path, whole: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept.duckdb"
    assert ask(folder, kept) == whole
    assert ask(folder, kept, ["gpu_*"]) == ask(folder, None, ["gpu_*"]) != whole


@given(st.integers(15_000, 25_000), st.integers(1, 60))
def test_a_later_day_reads_no_older_day_anew(day: int, later: int) -> None:
    kept = {*list_kept_days(day), *range(day + 1, day + later + 1)}
    assert {*list_compared_days(day + later)} <= kept
    own = list_compared_days(day)[: OWN.stop]
    assert {one % 2 for one in own} == {0}
    assert (day - own[0], day - own[-1]) in ((58, 20), (59, 21))
