"""Where the helpers of these tests lie."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[2] / "ledger")]

from real_postgres import Postgres, served


@pytest.fixture
def server() -> Iterator[Postgres]:
    """A PostgreSQL that one test may end and start."""
    yield from served()
