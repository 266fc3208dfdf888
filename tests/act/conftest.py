"""A quiet site, a fleet whose changes roll out, and a database on a real PostgreSQL."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from assay.act.loop.snapshot import FleetSnapshotCache
from tests.act.quiet_site import Site
from tests.act.rollouts.rolling_fleet import RollingFleet
from tests.ledger.conftest import postgres  # noqa: F401 — a fixture of the ledger's room
from tests.support.person import ann  # noqa: F401 — a fixture


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A quiet site, a minute after its first pass."""
    made = Site(tmp_path / "ledger.sqlite", tmp_path / "home")
    made.later(minutes=1)
    yield made
    made.ledger.close()


@pytest.fixture
def memory(site: Site) -> FleetSnapshotCache:
    """What a controller remembers of that site."""
    return FleetSnapshotCache(site.desk)


@pytest.fixture
def rolling(tmp_path: Path) -> Iterator[RollingFleet]:
    """A fleet in git whose first commit a controller has adopted."""
    made = RollingFleet(tmp_path / "fleet", tmp_path)
    made.git.commit()
    made.take_up()
    yield made
    made.ledger.close()


@pytest.fixture
def database(postgres: str) -> str:  # noqa: F811
    """Return the URL of a fresh database."""
    name = f"controllers_{uuid.uuid4().hex[:8]}"
    engine = create_engine(f"postgresql+psycopg://postgres@/postgres?host={postgres}", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return f"postgresql://postgres@/{name}?host={postgres}"
