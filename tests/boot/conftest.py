"""One lab and one boot server for the tests of starts that end well."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "actions"))

from boot_room import PATIENT, BootRoom, open_boot_room


@pytest.fixture(scope="session")
def boot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BootRoom]:
    with open_boot_room(tmp_path_factory.mktemp("boot"), deadlines=PATIENT) as room:
        yield room
