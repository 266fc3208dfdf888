"""Two hundred nodes on PostgreSQL, whose controllers and whose database are killed, one after the other."""

from __future__ import annotations

import pytest

from tests.integration.chaos.chaos import go_through
from tests.support.real_postgres import new_database


@pytest.mark.slow(minutes=7)
def test_two_hundred_nodes_three_hundred_kills_and_twenty_of_postgresql(chaos, server):
    place = new_database(server.socket)
    go_through(chaos(place, nodes=200, server=server), kills=300, of_postgres=20)
