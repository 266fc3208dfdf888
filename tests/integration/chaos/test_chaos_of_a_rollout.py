"""Changes roll out while their controllers are killed a hundred times: nothing happens twice, and each rollout ends."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from assay.decide.rollouts.rollout_history import ROLLOUTS
from assay.ledger.store import Ledger
from tests.integration.chaos.chaos import go_through
from tests.integration.chaos.rolling_chaos import RollingChaos
from tests.support.real_postgres import new_database

SEED = int(os.environ.get("ASSAY_CHAOS_SEED", "0")) or 14


@pytest.fixture
def rolling(tmp_path: Path):
    def make(place: str | Path, **of) -> RollingChaos:
        print(f"ASSAY_CHAOS_SEED={SEED}")  # noqa: T201 — whoever sees it fail wants it
        return RollingChaos(tmp_path, str(place), seed=SEED, **of)

    return make


def ends(story: RollingChaos) -> list[str]:
    with closing(Ledger.open(story.place)) as ledger:
        return [one.status for one in ROLLOUTS.fold(ledger.entries()).rollouts.values()]


@pytest.mark.slow(minutes=7)
def test_one_controller_on_sqlite_is_killed_while_it_rolls_changes_out(rolling, tmp_path):
    story = rolling(tmp_path / "ledger.sqlite", nodes=14)
    story.merges = 2
    go_through(story, kills=40, most_s=3.0, word="run")
    assert ends(story)[:2] == ["superseded", "finished"]


@pytest.mark.slow(minutes=7)
def test_two_controllers_are_killed_a_hundred_times_while_they_roll_changes_out(rolling, server):
    story = rolling(new_database(server.socket), nodes=16, server=server)
    go_through(story, kills=100, most_s=3.0, word="run", at_once=2)
    assert ends(story)[:3] == ["superseded", "finished", "finished"]
