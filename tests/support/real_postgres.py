"""A PostgreSQL of our own on a Unix socket, that can be killed and started again."""

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
from typing import Any

import pytest
from sqlalchemy import create_engine, text

DEBIAN = "/usr/lib/postgresql/15/bin"
SETTINGS = "-c listen_addresses= -c shared_buffers=32MB -c fsync=off -c full_page_writes=off"


def found(tool: str) -> str | None:
    """Return where a program of PostgreSQL's is, None where it is not installed."""
    return shutil.which(tool, path=f"{os.environ['PATH']}:{DEBIAN}")


class Postgres:
    """One server. `socket` is its socket's folder, and its home."""

    def __init__(self) -> None:
        self.socket = Path(tempfile.mkdtemp(prefix="assay-pg-"))
        self._asked: dict[str, Any] = {"cwd": self.socket}
        self._asked["env"] = {**os.environ, "HOME": str(self.socket), "LC_ALL": "C.UTF-8"}
        if os.geteuid() == 0:
            user = pwd.getpwnam("nobody")  # postgres refuses to run as root
            os.chown(self.socket, user.pw_uid, user.pw_gid)
            self._asked |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        made_of = "-D data -A trust -U postgres -N --no-instructions -E UTF8 --locale=C.UTF-8"
        making = [str(found("initdb")), *made_of.split()]
        subprocess.run(making, check=True, stdout=subprocess.DEVNULL, **self._asked)
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers; after a kill it may refuse as long as an orphan of it lives."""
        deadline = time.monotonic() + 60
        self._launch()
        while subprocess.run([str(found("pg_isready")), "-q", "-h", str(self.socket)], check=False).returncode:
            assert time.monotonic() < deadline, (self.socket / "log").read_text()[-2000:]
            if self._server.poll() is not None:
                self._launch()
            time.sleep(0.02)

    def _launch(self) -> None:
        words = [str(found("postgres")), "-D", "data", "-k", str(self.socket), *SETTINGS.split()]
        with (self.socket / "log").open("a") as log:
            self._server = subprocess.Popen(words, stdout=log, stderr=log, **self._asked)

    def end(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """End it by a signal: SIGQUIT as `pg_ctl stop -m immediate`, SIGINT as `-m fast`, or SIGKILL."""
        self._server.send_signal(how)
        self._server.wait()

    def close(self) -> None:
        """End it and take its files away."""
        self.end()
        shutil.rmtree(self.socket, ignore_errors=True)


def served() -> Iterator[Postgres]:
    """Yield a server for one test or more, as a fixture does. Skips where PostgreSQL is not installed."""
    if not (found("initdb") and found("postgres")):
        pytest.skip("needs PostgreSQL: apt-get install postgresql")
    server = Postgres()
    yield server
    server.close()


def new_database(socket: Path | str) -> str:
    """Make an empty database on the server whose socket lies in this folder, and return its URL."""
    name = f"made_{uuid.uuid4().hex[:8]}"
    engine = create_engine(f"postgresql+psycopg://postgres@/postgres?host={socket}", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return f"postgresql://postgres@/{name}?host={socket}"
