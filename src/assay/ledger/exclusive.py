"""A short section that one process at a time goes through, on one machine or on many; it dies with its holder."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import IO

from sqlalchemy import Engine, text

from assay.ledger.engine import telling
from assay.model.errors import Trouble

EACH_S = 0.005


@contextmanager
def exclusively(engine: Engine, name: str, patience_s: float) -> Iterator[None]:
    """Hold the section `name` of this ledger. Raises Trouble when others keep it for longer than our patience."""
    held = _on_server if engine.dialect.name == "postgresql" else _beside_file
    with held(engine, name, patience_s):
        yield


@contextmanager
def within(turn: Lock, patience_s: float) -> Iterator[None]:
    """Let one thread of this process through at a time, so that those who wait take no connections from others."""
    if not turn.acquire(timeout=patience_s):
        raise Trouble("another thread does not let go of its turn", fix="wait for it")
    try:
        yield
    finally:
        turn.release()


@contextmanager
def _on_server(engine: Engine, name: str, patience_s: float) -> Iterator[None]:
    """Hold an advisory lock of a transaction: the server lets go of it when it loses the connection."""
    with telling(engine), engine.connect() as connection:
        connection.execute(text(f"SET LOCAL lock_timeout = {round(patience_s * 1000)}"))
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"), {"name": name})
        yield


@contextmanager
def _beside_file(engine: Engine, name: str, patience_s: float) -> Iterator[None]:
    """Hold a file lock beside the ledger, which ends with the process; readers and writers of it go on."""
    path = Path(f"{engine.url.database}.{name}.lock")
    with path.open("a") as file:
        _take(file, path, time.monotonic() + patience_s)
        yield


def _take(file: IO[str], path: Path, until: float) -> None:
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                fix = "wait for it, or end the process that holds it"
                raise Trouble("another process does not let go of its turn", where=str(path), fix=fix) from None
            time.sleep(EACH_S)
