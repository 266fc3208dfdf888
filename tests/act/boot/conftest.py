"""One lab and one boot server for the tests of starts that end well."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.act.boot.boot_room import PATIENT, BootRoom, open_boot_room


@pytest.fixture(scope="session")
def boot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BootRoom]:
    with open_boot_room(tmp_path_factory.mktemp("boot"), deadlines=PATIENT) as room:
        yield room
