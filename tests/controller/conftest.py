"""Where the helpers of these tests lie, and a database on a real PostgreSQL."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path

import pytest
from ledger.conftest import postgres  # noqa: F401 — a fixture of the ledger's room
from person import ann  # noqa: F401 — a fixture
from sqlalchemy import create_engine, text

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "actions")]


@pytest.fixture
def database(postgres: str) -> str:  # noqa: F811
    """Return the URL of a fresh database."""
    name = f"controllers_{uuid.uuid4().hex[:8]}"
    engine = create_engine(f"postgresql+psycopg://postgres@/postgres?host={postgres}", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return f"postgresql://postgres@/{name}?host={postgres}"
