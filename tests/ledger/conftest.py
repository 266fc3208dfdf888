"""Ledgers to write in: SQLite always, a real PostgreSQL where one is installed."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from assay.ledger.store import Ledger

DEBIAN = "/usr/lib/postgresql/15/bin"


def _found(tool: str) -> str | None:
    return shutil.which(tool, path=f"{os.environ['PATH']}:{DEBIAN}")


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A PostgreSQL of our own on a Unix socket, as its socket's folder."""
    if not (_found("initdb") and _found("postgres")):
        pytest.skip("needs PostgreSQL: apt-get install postgresql")
    root = Path(tempfile.mkdtemp(prefix="assay-pg-"))
    asked: dict[str, object] = {"cwd": root, "env": {**os.environ, "HOME": str(root), "LC_ALL": "C.UTF-8"}}
    if os.geteuid() == 0:
        user = pwd.getpwnam("nobody")  # postgres refuses to run as root
        os.chown(root, user.pw_uid, user.pw_gid)
        asked |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    made_of = "-D data -A trust -U postgres -N --no-instructions -E UTF8 --locale=C.UTF-8"
    making = [_found("initdb"), *made_of.split()]
    subprocess.run(making, check=True, stdout=subprocess.DEVNULL, **asked)  # type: ignore[call-overload]
    settings = f"-D data -k {root} -c listen_addresses= -c shared_buffers=32MB -c fsync=off -c full_page_writes=off"
    with (root / "log").open("w") as log:
        server = subprocess.Popen([_found("postgres"), *settings.split()], stdout=log, stderr=log, **asked)  # type: ignore[call-overload]
    while subprocess.run([str(_found("pg_isready")), "-q", "-h", str(root)], check=False).returncode:
        assert server.poll() is None, (root / "log").read_text()
        time.sleep(0.02)
    yield str(root)
    server.send_signal(signal.SIGQUIT)
    server.wait()
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def postgres_place(postgres: str) -> str:
    """The URL of a fresh database."""
    name = f"ledger_{uuid.uuid4().hex[:8]}"
    engine = create_engine(f"postgresql+psycopg://postgres@/postgres?host={postgres}", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return f"postgresql://postgres@/{name}?host={postgres}"


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
