"""One lab for all tests of actions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.lab_room import Room, lab_room


@pytest.fixture(scope="session")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    with lab_room(tmp_path_factory.mktemp("fleet")) as room:
        yield room
