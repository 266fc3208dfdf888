"""The parsed source, once for all tests of the folder, and not for those that come after it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.architecture.source_tree import SourceModule, read_source_modules


@pytest.fixture(scope="package", autouse=True)
def modules() -> Iterator[list[SourceModule]]:
    yield read_source_modules()
    read_source_modules.cache_clear()
