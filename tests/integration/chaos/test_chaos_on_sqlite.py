"""Two hundred nodes on SQLite, whose controllers are killed, one after the other."""

from __future__ import annotations

import pytest

from tests.integration.chaos.chaos import go_through


@pytest.mark.slow(minutes=4)
def test_two_hundred_nodes_and_a_hundred_kills_on_sqlite(chaos, tmp_path):
    go_through(chaos(tmp_path / "ledger.sqlite", nodes=200), kills=100)
