"""Waits for new entries in a ledger without polling for them."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import OperationalError

from assay.ledger.connection import open_reader

POLL_INTERVAL_S = 0.02
"""Between two looks at SQLite's own number of changes, which costs some 10 µs and reads no table."""
NOTIFY_CHANNEL = "assay_ledger"


def wait_for_entries(engine: Engine, head: Callable[[], int], after: int, timeout_s: float) -> int:
    """Return `head()` as soon as it is above `after`, or its value when the time is over."""
    until = time.monotonic() + timeout_s
    if (now := head()) > after or timeout_s <= 0:
        return now
    if engine.dialect.name == "postgresql":
        return _listen_postgresql(engine, head, after, until)
    return _poll_sqlite(engine, head, after, until)


def _listen_postgresql(engine: Engine, head: Callable[[], int], after: int, until: float) -> int:
    with open_reader(engine) as connection:
        connection.execute(text(f"LISTEN {NOTIFY_CHANNEL}"))
        try:
            while (now := head()) <= after and (left := until - time.monotonic()) > 0:
                _wait_for_notify(connection, left)
            return now
        finally:
            if not connection.invalidated:
                connection.execute(text(f"UNLISTEN {NOTIFY_CHANNEL}"))


def _wait_for_notify(connection: Connection, timeout_s: float) -> None:
    """Sleep until somebody notifies. Raises OperationalError if the server is gone."""
    import psycopg

    try:
        for _ in connection.connection.driver_connection.notifies(timeout=timeout_s, stop_after=1):  # type: ignore[union-attr]
            pass
    except psycopg.Error as error:
        connection.invalidate()
        raise OperationalError("LISTEN", None, error) from error


def _poll_sqlite(engine: Engine, head: Callable[[], int], after: int, until: float) -> int:
    """Watch the database from a separate connection: its number changes only when others write."""
    with closing(sqlite3.connect(str(engine.url.database))) as database:
        seen = _data_version(database)
        while (now := head()) <= after and time.monotonic() < until:
            while _data_version(database) == seen and time.monotonic() < until:
                time.sleep(POLL_INTERVAL_S)
            seen = _data_version(database)
        return now


def _data_version(database: sqlite3.Connection) -> int:
    ((number,),) = database.execute("PRAGMA data_version")
    return int(number)
