"""A short section that one process at a time goes through, on one machine or on many; it dies with its holder.

Leases: who may work on something until when, by the database's own clock, so that no controller's clock counts.

A lease says nothing of history and changes; whoever holds one renews it by claiming it again. A database whose clock
is set back keeps the lease of a dead holder for so much longer.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock
from typing import IO, Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Float,
    cast,
    delete,
    extract,
    func,
    literal_column,
    select,
    text,
)

from assay.ledger import tables
from assay.ledger.connection import translate_errors
from assay.ledger.tables import insert_or_update
from assay.model.errors import AssayError

LOCK_RETRY_S = 0.005


@cache
def current_process() -> str:
    """Return this process's name among holders of leases, which no other process ever has: host:pid:token."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


@contextmanager
def hold_section(engine: Engine, name: str, patience_s: float) -> Iterator[None]:
    """Hold the section `name` of this ledger. Raises Trouble when others keep it for longer than our patience."""
    held = _hold_advisory_lock if engine.dialect.name == "postgresql" else _hold_file_lock
    with held(engine, name, patience_s):
        yield


@contextmanager
def hold_thread_lock(turn: Lock, patience_s: float) -> Iterator[None]:
    """Let one thread of this process through at a time, so that those who wait take no connections from others."""
    if not turn.acquire(timeout=patience_s):
        raise AssayError("another thread does not let go of its turn", fix="wait for it")
    try:
        yield
    finally:
        turn.release()


@contextmanager
def _hold_advisory_lock(engine: Engine, name: str, patience_s: float) -> Iterator[None]:
    """Hold an advisory lock of a transaction: the server lets go of it when it loses the connection."""
    with translate_errors(engine), engine.connect() as connection:
        connection.execute(text(f"SET LOCAL lock_timeout = {round(patience_s * 1000)}"))
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"), {"name": name})
        yield


@contextmanager
def _hold_file_lock(engine: Engine, name: str, patience_s: float) -> Iterator[None]:
    """Hold a file lock beside the ledger, which ends with the process; readers and writers of it go on."""
    path = Path(f"{engine.url.database}.{name}.lock")
    with path.open("a") as file:
        _lock_file(file, path, time.monotonic() + patience_s)
        yield


def _lock_file(file: IO[str], path: Path, until: float) -> None:
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                fix = "wait for it, or end the process that holds it"
                raise AssayError("another process does not let go of its turn", where=str(path), fix=fix) from None
            time.sleep(LOCK_RETRY_S)


class LedgerLease(NamedTuple):
    """Who holds it, and until when: seconds since 1970 by the database's clock."""

    holder: str
    until_s: float


def claim_lease(connection: Connection, name: str, holder: str, for_s: float) -> bool:
    """Take a lease that is free, over or ours already, for so many seconds from now; return whether it is ours."""
    table, now = tables.leases, _database_time(connection)
    statement = insert_or_update(connection, table).values(name=name, holder=holder, until_s=now + for_s)
    fresh = statement.excluded
    ours = (table.c.holder == fresh.holder) | (table.c.until_s <= now)
    taken = {"holder": fresh.holder, "until_s": fresh.until_s}
    statement = statement.on_conflict_do_update(index_elements=["name"], set_=taken, where=ours)
    return connection.execute(statement.returning(table.c.name)).first() is not None


def release_lease(connection: Connection, name: str, holder: str) -> None:
    """End a lease at once, if this holder has it."""
    table = tables.leases
    connection.execute(delete(table).where(table.c.name == name, table.c.holder == holder))


def list_leases(connection: Connection) -> dict[str, LedgerLease]:
    """Return the leases that are held now, by name."""
    table = tables.leases
    found = connection.execute(select(table).where(table.c.until_s > _database_time(connection)).order_by(table.c.name))
    return {row.name: LedgerLease(row.holder, row.until_s) for row in found}


def _database_time(connection: Connection) -> ColumnElement[Any]:
    if connection.dialect.name == "postgresql":
        return cast(extract("epoch", func.clock_timestamp()), Float)
    return literal_column("(julianday('now') - 2440587.5) * 86400.0", Float)
