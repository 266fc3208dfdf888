"""One lab for all tests of actions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from lab_room import Room, lab_room


@pytest.fixture(scope="session")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    with lab_room(tmp_path_factory.mktemp("fleet")) as room:
        yield room
