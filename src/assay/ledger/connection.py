"""Opens a ledger: SQLite beside the fleet, or PostgreSQL by URL. Says what is wrong if it cannot be opened.

An SQLite ledger can be read where nobody can write: on a full or read-only disk, under a lock, as a file of somebody
else. SQLite writes `-shm` beside a ledger even to read it. Where that fails, the ledger is read from a copy with its
write-ahead log, in memory or in the folder for temporary files. On a read-only file system without a log it is read as
it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, select, text
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from assay.ledger import tables
from assay.ledger.errors import (
    LEDGER_VARIABLE,
    SCHEMA_VERSION,
    UPGRADED_VERSIONS,
    BrokenLedgerError,
    LedgerError,
    make_database_error,
    make_no_ledger_error,
    make_not_a_ledger_error,
    make_schema_version_error,
)
from assay.ledger.schema_upgrade import open_upgraded_copy, upgrade_schema
from assay.ledger.sqlite_source import SqliteSource
from assay.model.errors import AssayError

LOCK_TIMEOUT_S = 10.0
SECRET_PARAMETERS = ("password", "sslpassword")
"""Words of a URL's query that are never shown."""


def parse_ledger_url(where: Path | str) -> URL:
    """Return the URL of a ledger: a path is an SQLite file, `postgresql://…` a server. Raises AssayError otherwise."""
    if isinstance(where, Path) or "://" not in where:
        return URL.create("sqlite", database=str(where))
    url = _parse_url(where)
    if url.get_backend_name() == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() == "sqlite":
        return url
    raise AssayError(f"no ledger can live on {url.get_backend_name()}", fix="give a file or a postgresql:// URL")


def _parse_url(where: str) -> URL:
    try:
        return make_url(where)
    except (ArgumentError, ValueError):  # which may quote a part of the password
        fix = "write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, special characters of a password as %XX"
        raise AssayError("the ledger's URL cannot be read", where=LEDGER_VARIABLE, fix=fix) from None


def open_engine(url: URL, patience_s: float = LOCK_TIMEOUT_S) -> Engine:
    """Return an engine for the ledger at `url`; make the ledger if there is none, and upgrade an older one.

    Raises AssayError.
    """
    if url.get_backend_name() == "sqlite":
        _make_folder(Path(str(url.database)).parent)
        engine = _sqlite_engine(url, patience_s)
    else:
        engine = _postgresql_engine(url, patience_s)
    with translate_errors(engine):
        _check_schema(engine)
    return engine


def open_reading_engine(url: URL, patience_s: float = LOCK_TIMEOUT_S) -> Engine:
    """Return an engine that only reads the ledger at `url`, wherever it can be read. Raises AssayError.

    An older ledger is read from an upgraded copy.
    """
    engine = open_source_engine(url, patience_s)
    with open_snapshot(engine) as connection:
        if _version(connection) == SCHEMA_VERSION:
            return engine
        copy = open_upgraded_copy(connection, name_ledger(engine))
    engine.dispose()
    return copy


def open_source_engine(url: URL, patience_s: float = LOCK_TIMEOUT_S) -> Engine:
    """Return an engine that only reads the ledger at `url`, in the schema that it has. Raises AssayError."""
    if url.get_backend_name() == "sqlite":
        file = Path(str(url.database))
        _require_file(file)
        source = SqliteSource(file, patience_s)
        engine = create_engine(url, creator=source.connect)
    else:
        engine = _postgresql_engine(url, patience_s)
        event.listen(engine, "connect", partial(_forbid_writing, patience_s))
    with open_reader(engine) as connection:
        version = _version(connection)
    if version is None:
        raise make_not_a_ledger_error([], name_ledger(engine))
    if version not in (SCHEMA_VERSION, *UPGRADED_VERSIONS):
        raise make_schema_version_error(version, name_ledger(engine))
    return engine


def _require_file(file: Path) -> None:
    """Raise LedgerError if there is no file; why a folder cannot be read is for the reader to say."""
    with suppress(OSError):
        if file.exists():
            return
        raise make_no_ledger_error(str(file))


def _forbid_writing(patience_s: float, connection: Any, _record: Any) -> None:
    """Let a connection to PostgreSQL only read, and wait only so long for a table that somebody locks."""
    connection.autocommit = True
    connection.execute("SET default_transaction_read_only = on")
    connection.execute(f"SET lock_timeout = {max(1, round(patience_s * 1000))}")
    connection.autocommit = False


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AssayError(f"no folder for the ledger: {error.strerror}", where=str(folder), fix="make it") from error


def _sqlite_engine(url: URL, patience_s: float) -> Engine:
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


def _postgresql_engine(url: URL, patience_s: float) -> Engine:
    """Return an engine that tests each connection before it uses it, because servers restart."""
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
def open_reader(engine: Engine) -> Iterator[Connection]:
    """Yield a connection that sees committed data and takes no lock; database errors become AssayError."""
    with translate_errors(engine), engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        yield connection


@contextmanager
def open_snapshot(engine: Engine) -> Iterator[Connection]:
    """Yield a connection that sees the ledger as it is now, even if others write meanwhile. It takes no lock."""
    if engine.dialect.name == "postgresql":
        with (
            translate_errors(engine),
            engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection,
        ):
            yield connection
        return
    with open_reader(engine) as connection:
        connection.exec_driver_sql("BEGIN")
        try:
            yield connection
        finally:
            connection.exec_driver_sql("ROLLBACK")


@contextmanager
def open_writer(engine: Engine) -> Iterator[Connection]:
    """Yield a connection inside one transaction, as the only writer; database errors become AssayError.

    With one writer at a time, `seq` follows the order of commits. So a reader that asks for entries `after` a number
    misses nothing.
    """
    with translate_errors(engine), engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("LOCK TABLE assay_ledger IN SHARE ROW EXCLUSIVE MODE"))
        yield connection


def _check_schema(engine: Engine) -> None:
    with open_reader(engine) as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")
        version = _version(connection)
    if version is None or version in UPGRADED_VERSIONS:
        _create_or_upgrade_schema(engine)
    elif version != SCHEMA_VERSION:
        raise make_schema_version_error(version, name_ledger(engine))


def _create_or_upgrade_schema(engine: Engine) -> None:
    """Do it in one transaction, and only if no other process has done it meanwhile."""
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('assay ledger'))"))
        version = _version(connection)
        if version is None:
            tables.create_tables(connection)
        elif version in UPGRADED_VERSIONS:
            upgrade_schema(connection)


def _version(connection: Connection) -> int | None:
    names = inspect(connection).get_table_names()
    if tables.schema_info.name in names:
        versions = connection.execute(select(tables.schema_info.c.version)).scalars().all()
        if len(versions) != 1:
            problem = f"its table {tables.schema_info.name} holds {len(versions)} lines in place of one"
            raise BrokenLedgerError([problem], name_ledger(connection.engine))
        return int(versions[0])
    if names and connection.dialect.name == "sqlite":
        raise make_not_a_ledger_error(names, name_ledger(connection.engine))
    if taken := sorted(set(names) & set(tables.metadata.tables)):
        raise make_not_a_ledger_error(taken, name_ledger(connection.engine))
    return None


@contextmanager
def translate_errors(engine: Engine) -> Iterator[None]:
    """Turn a database error into AssayError for people. The message names the ledger without its password."""
    try:
        yield
    except DBAPIError as error:
        raise make_database_error(str(error.orig), name_ledger(engine)) from error
    except SQLAlchemyError as error:
        raise LedgerError(f"the ledger failed: {error}", where=name_ledger(engine)) from error


def name_ledger(engine: Engine) -> str:
    """Return the path or URL of a ledger as people see it, without its password."""
    if engine.dialect.name == "sqlite":
        return str(engine.url.database)
    return (
        engine.url.set(drivername="postgresql")
        .difference_update_query(SECRET_PARAMETERS)
        .render_as_string(hide_password=True)
    )


def give_back_space(engine: Engine) -> None:
    """Give the space of deleted rows back to the disk, where SQLite keeps it; PostgreSQL's own cleaner does that.

    SQLite needs room for a copy, and nobody else who writes. Without these the file stays as it is, and the next runs
    use its free space.
    """
    if engine.dialect.name == "postgresql":
        return
    with suppress(AssayError), open_reader(engine) as connection:
        connection.exec_driver_sql("VACUUM")
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
