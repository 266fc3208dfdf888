"""Ledgers to write in: SQLite always, a real PostgreSQL where one is installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.ledger.store import Ledger
from tests.support.real_postgres import Postgres, new_database, served


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A PostgreSQL of our own on a Unix socket, as its socket's folder."""
    for server in served():
        yield str(server.socket)


@pytest.fixture
def server() -> Iterator[Postgres]:
    """A PostgreSQL that one test may end and start."""
    yield from served()


@pytest.fixture
def postgres_place(postgres: str) -> str:
    """The URL of a fresh database."""
    return new_database(postgres)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path) -> Path | str:
    """Where an empty ledger may be made: a path, or the URL of a fresh database."""
    if request.param == "sqlite":
        return tmp_path / "home" / "ledger.sqlite"
    url: str = request.getfixturevalue("postgres_place")
    return url


@pytest.fixture
def ledger(place) -> Iterator[Ledger]:
    opened = Ledger.open(place)
    yield opened
    opened.close()
