"""Whatever is killed whenever: no effect twice, none lost, no node goes where no way leads, the hash chain holds."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chaos import Chaos
from real_postgres import new_database
from small_disk import run_on_small_disk

SEED = int(os.environ.get("ASSAY_CHAOS_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)


@pytest.fixture
def chaos(tmp_path: Path) -> Callable[..., Chaos]:
    def make(place: str | Path, **of: object) -> Chaos:
        print(f"ASSAY_CHAOS_SEED={SEED}")  # noqa: T201 — whoever sees it fail wants it
        return Chaos(tmp_path, str(place), seed=SEED, **of)  # type: ignore[arg-type]

    return make


def went_through(story: Chaos, kills: int, of_postgres: int = 0, **how: Any) -> None:
    with story.nursery():
        story.rage(kills, of_postgres, **how)
        story.settle()
    assert (story.killed["controller"] >= kills, story.killed["postgres"]) == (True, of_postgres)
    assert story.said("crashes") == ""
    assert story.wrongs() == []
    assert story.world.done(), "something was done at all"


def test_a_few_kills_on_sqlite(chaos, tmp_path):
    went_through(chaos(tmp_path / "ledger.sqlite", nodes=20), kills=6, most_s=1.0)


@pytest.mark.parametrize("what", ["everything", pytest.param("dbos", marks=pytest.mark.slow)])
def test_a_controller_on_a_full_disk_says_so_and_goes_on_when_there_is_room(tmp_path, what):
    disk, elsewhere = tmp_path / "disk", tmp_path / "elsewhere"
    elsewhere.mkdir()
    said = run_on_small_disk(disk, "8m", Path(__file__).parent / "on_full_disk.py", disk, elsewhere, what)
    assert all("full" in line or "No space left" in line or "→" in line for line in said.splitlines()), said


@pytest.mark.slow
def test_two_hundred_nodes_three_hundred_kills_and_twenty_of_postgresql(chaos, server):
    place = new_database(server.socket)
    went_through(chaos(place, nodes=200, server=server), kills=300, of_postgres=20)


@pytest.mark.slow
def test_two_hundred_nodes_and_a_hundred_kills_on_sqlite(chaos, tmp_path):
    went_through(chaos(tmp_path / "ledger.sqlite", nodes=200), kills=100)


@pytest.mark.slow
def test_two_running_controllers_share_two_hundred_nodes_on_postgresql_and_are_killed(chaos, server):
    story = chaos(new_database(server.socket), nodes=200, server=server)
    went_through(story, kills=60, of_postgres=5, most_s=4.0, word="run", at_once=2)
