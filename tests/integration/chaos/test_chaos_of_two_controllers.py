"""Two controllers that share two hundred nodes on PostgreSQL, and are killed."""

from __future__ import annotations

import pytest

from tests.integration.chaos.chaos import go_through
from tests.support.real_postgres import new_database


@pytest.mark.slow(minutes=4)
def test_two_running_controllers_share_two_hundred_nodes_on_postgresql_and_are_killed(chaos, server):
    story = chaos(new_database(server.socket), nodes=200, server=server)
    go_through(story, kills=60, of_postgres=5, most_s=4.0, word="run", at_once=2)
