"""Opening a ledger: SQLite beside the fleet, PostgreSQL by URL, and what to tell a person when it cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, select, text
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from assay.ledger import tables
from assay.ledger.where import ASKED
from assay.ledger.words import VERSION, no_ledger, other_version, plainly
from assay.model.errors import Trouble

PATIENCE_S = 10.0
SECRET = ("password", "sslpassword")
"""Words of a URL's query that are never shown."""


def address(where: Path | str) -> URL:
    """Return the URL of a ledger: a path is an SQLite file, `postgresql://…` a server. Raises Trouble for another."""
    if isinstance(where, Path) or "://" not in where:
        return URL.create("sqlite", database=str(where))
    url = _read(where)
    if url.get_backend_name() == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() == "sqlite":
        return url
    raise Trouble(f"no ledger can live on {url.get_backend_name()}", fix="give a file or a postgresql:// URL")


def _read(where: str) -> URL:
    try:
        return make_url(where)
    except (ArgumentError, ValueError):  # which may quote a part of the password
        fix = "write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, special characters of a password as %XX"
        raise Trouble("the ledger's URL cannot be read", where=ASKED, fix=fix) from None


def connect(url: URL, patience_s: float = PATIENCE_S) -> Engine:
    """Return an engine for the ledger at `url`, made there if there is nothing yet. Raises Trouble."""
    if url.get_backend_name() == "sqlite":
        _make_folder(Path(str(url.database)).parent)
        engine = _sqlite(url, patience_s)
    else:
        engine = _server(url, patience_s)
    with telling(engine):
        _ensure(engine)
    return engine


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Trouble(f"no folder for the ledger: {error.strerror}", where=str(folder), fix="make it") from error


def _sqlite(url: URL, patience_s: float) -> Engine:
    engine = create_engine(url, connect_args={"timeout": patience_s, "check_same_thread": False})

    def configure(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # transactions begin where `begin` below says, not where the driver guesses
        connection.execute("PRAGMA synchronous = FULL")  # acknowledged is on the disk
        connection.execute("PRAGMA foreign_keys = ON")

    def begin(connection: Connection) -> None:
        if connection.get_execution_options().get("isolation_level") != "AUTOCOMMIT":
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # a writer waits for its turn at once, never half-way

    event.listen(engine, "connect", configure)
    event.listen(engine, "begin", begin)
    return engine


def _server(url: URL, patience_s: float) -> Engine:
    """Return an engine that asks whether a connection still stands before it uses it: servers are started anew."""
    patience = {"connect_timeout": max(2, round(patience_s))}  # the driver takes less than 2 s for 2 s
    engine = create_engine(url, connect_args=patience, pool_pre_ping=True)

    def configure(connection: Any, _record: Any) -> None:
        connection.autocommit = True
        connection.execute("SET tcp_keepalives_idle = 10")  # a machine that is gone lets go of its locks in time
        connection.execute("SET tcp_keepalives_interval = 5")
        connection.execute("SET tcp_keepalives_count = 3")
        connection.autocommit = False

    event.listen(engine, "connect", configure)
    return engine


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Yield a connection that sees what is committed and takes no lock; database errors become Trouble."""
    with telling(engine), engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        yield connection


@contextmanager
def snapshot(engine: Engine) -> Iterator[Connection]:
    """Yield a connection that sees the ledger as it is now, however many write meanwhile, and takes no lock."""
    if engine.dialect.name == "postgresql":
        with telling(engine), engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
            yield connection
        return
    with reading(engine) as connection:
        connection.exec_driver_sql("BEGIN")
        try:
            yield connection
        finally:
            connection.exec_driver_sql("ROLLBACK")


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """Yield a connection inside one transaction, the only writer while it lasts; database errors become Trouble.

    One writer at a time keeps `seq` in the order of commits, so that a reader that asks `after` misses nothing.
    """
    with telling(engine), engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("LOCK TABLE assay_ledger IN SHARE ROW EXCLUSIVE MODE"))
        yield connection


def _ensure(engine: Engine) -> None:
    with reading(engine) as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")
        version = _version(connection)
    if version is None:
        _found(engine)
    elif version != VERSION:
        raise other_version(version, _name(engine))


def _found(engine: Engine) -> None:
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('assay ledger'))"))
        if _version(connection) is None:
            tables.create(connection)


def _version(connection: Connection) -> int | None:
    names = inspect(connection).get_table_names()
    if tables.about.name in names:
        version: int = connection.execute(select(tables.about.c.version)).scalar_one()
        return version
    if names and connection.dialect.name == "sqlite":
        raise no_ledger(names, _name(connection.engine))
    if taken := sorted(set(names) & set(tables.metadata.tables)):
        raise no_ledger(taken, _name(connection.engine))
    return None


@contextmanager
def telling(engine: Engine) -> Iterator[None]:
    """Turn what a database says into Trouble for a person, naming the ledger without its password."""
    try:
        yield
    except DBAPIError as error:
        raise plainly(str(error.orig), _name(engine)) from error
    except SQLAlchemyError as error:
        raise Trouble(f"the ledger failed: {error}", where=_name(engine)) from error


def _name(engine: Engine) -> str:
    if engine.dialect.name == "sqlite":
        return str(engine.url.database)
    return engine.url.set(drivername="postgresql").difference_update_query(SECRET).render_as_string(hide_password=True)
