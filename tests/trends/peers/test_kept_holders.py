"""The file that keeps holders changes no answer: with it, the table is what the whole ledger says."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.decide.state.part_holders import list_part_holders
from assay.decide.trends import fleet_tables
from assay.decide.trends.fleet_tables import fill_holders
from assay.ledger.history.parquet_files import connect_duckdb
from assay.ledger.store import Ledger
from assay.model.entries.assets import PartsSeenEntry, SeenPart, SetupSeenEntry
from assay.model.entries.node import CertifiedEntry
from assay.model.ledger_entry import LedgerEntry
from assay.model.timestamps import format_time

START = datetime(2026, 11, 1, tzinfo=UTC)
NOW = START + timedelta(days=30)


def look(number: int, node: str, serial: str, hours: float) -> list[LedgerEntry]:
    """A node with one GPU is looked at, some hours after the start."""
    at = format_time(START + timedelta(hours=hours))
    parts = PartsSeenEntry({"gpu0": SeenPart("gpu", serial)}, {"bmc": f"S-{node}"})
    setup = SetupSeenEntry("lab/r1", 4, "h100", "", {"driver": f"570.{number}"}, {"gpu0": "H100"})
    return [parts.make_entry(f"p{number}", at, node), setup.make_entry(f"s{number}", at, node)]


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    for number, node in enumerate(("n1", "n2", "n3")):
        ledger.append(*look(number, node, f"G{number}", number))
    yield ledger
    ledger.close()


@pytest.fixture(scope="module")
def empty_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger to copy, which is cheaper than to make one."""
    place = tmp_path_factory.mktemp("empty") / "ledger.sqlite"
    Ledger.open(place).close()
    return place


def read_table(ledger: Ledger, kept: Path | None, as_of: datetime = NOW) -> list[tuple[Any, ...]]:
    with connect_duckdb(threads=1, memory_limit="100MB") as database:
        fill_holders(database, ledger, as_of, kept)
        return sorted(database.execute("FROM holders").fetchall(), key=repr)


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The nodes whose entries were followed since the last look at this list."""
    nodes: list[str] = []

    def follow(node: str, entries: list[LedgerEntry]) -> Any:
        nodes.append(node)
        return list_part_holders(node, entries)

    monkeypatch.setattr(fleet_tables, "list_part_holders", follow)
    return nodes


def test_only_nodes_with_new_entries_are_followed(ledger: Ledger, tmp_path: Path, followed: list[str]) -> None:
    kept = tmp_path / "trends" / "holders.parquet"
    assert len(read_table(ledger, kept)) == 6, "each node and its GPU"
    assert followed == ["n1", "n2", "n3"]
    followed.clear()
    ledger.append(*look(3, "n2", "G9", 40), CertifiedEntry("ann", "x").make_entry("c", format_time(NOW), "n3"))
    with_file = read_table(ledger, kept)
    assert followed == ["n2", "n3"]
    assert with_file == read_table(ledger, None)
    followed.clear()
    assert read_table(ledger, kept) == with_file
    assert followed == []


def drop_key(kept: Path) -> None:
    """Write the rows of the file into one that does not say up to which entry it counts."""
    other = kept.with_name("other.parquet")
    with connect_duckdb(threads=1, memory_limit="100MB") as database:
        database.execute(f"COPY (FROM read_parquet('{kept}')) TO '{other}' (FORMAT parquet)")
    other.replace(kept)


SPOILT: dict[str, Callable[[Path], object]] = {
    "no parquet": lambda kept: kept.write_bytes(b"no parquet"),
    "cut": lambda kept: kept.write_bytes(kept.read_bytes()[:-30]),
    "gone": Path.unlink,
    "without its key": drop_key,
}


@pytest.mark.parametrize("how", SPOILT)
def test_a_file_that_cannot_be_used_is_made_again(
    ledger: Ledger, tmp_path: Path, followed: list[str], how: str
) -> None:
    kept = tmp_path / "holders.parquet"
    whole = read_table(ledger, kept)
    SPOILT[how](kept)
    followed.clear()
    assert read_table(ledger, kept) == whole
    assert len(followed) == 3
    followed.clear()
    assert read_table(ledger, kept) == whole
    assert followed == []


def test_the_file_of_another_ledger_is_not_used(ledger: Ledger, tmp_path: Path) -> None:
    kept = tmp_path / "holders.parquet"
    read_table(ledger, kept)
    other = Ledger.open(tmp_path / "other.sqlite")
    for number in range(3):
        other.append(*look(number, "n1", f"H{number}", number))
    assert read_table(other, kept) == read_table(other, None)
    other.close()


def test_a_moment_in_the_past_neither_uses_nor_changes_the_file(ledger: Ledger, tmp_path: Path) -> None:
    kept = tmp_path / "holders.parquet"
    read_table(ledger, kept)
    before = kept.read_bytes()
    past = START + timedelta(hours=1, minutes=30)
    told = read_table(ledger, kept, past)
    assert told == read_table(ledger, None, past)
    assert {row[0] for row in told} == {"n1", "n2"}
    assert kept.read_bytes() == before


@given(
    looks=st.lists(
        st.tuples(st.sampled_from(["n1", "n2", "n3"]), st.sampled_from("ABC"), st.integers(0, 100), st.booleans()),
        max_size=6,
    )
)
@settings(deadline=None)
def test_asked_after_any_entries_it_says_what_the_whole_ledger_says(
    tmp_path_factory: pytest.TempPathFactory, empty_ledger: Path, looks: list[tuple[str, str, int, bool]]
) -> None:
    folder = tmp_path_factory.mktemp("ledger")
    ledger, kept = Ledger.open(shutil.copy(empty_ledger, folder)), folder / "holders.parquet"
    for number, (node, serial, hours, is_asked) in enumerate(looks):
        ledger.append(*look(number, node, serial, hours))
        if is_asked:  # also as of a moment before some of the entries
            as_of = START + timedelta(hours=hours)
            assert read_table(ledger, kept, as_of) == read_table(ledger, None, as_of)
    assert read_table(ledger, kept) == read_table(ledger, None)
    ledger.close()
    shutil.rmtree(folder)
