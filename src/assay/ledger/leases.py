"""Locks and leases: who may work on what, and until when.

A file lock (`file_locks.py`) works on one machine and ends with its process. A section excludes all other processes of
a ledger, on any machine. A lease is a row of the ledger's database: a holder, and an end by the database's own clock.
Its holder renews it by claiming it again. If the holder dies, it loses the lease at its end.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import sqlalchemy as sa

from assay.ledger import tables
from assay.ledger.connection import translate_errors
from assay.ledger.file_locks import hold_file_lock, hold_node_lock
from assay.ledger.tables import insert_or_update
from assay.model.errors import AssayError
from assay.model.text.safe_text import redact

SECTION_POLL_S, LEASE_POLL_S = 0.005, 0.5
OTHER_CONTROLLER_FIX = "a controller that keeps running acts by itself; else wait for it, or end it: nothing is lost"


class LedgerLease(NamedTuple):
    """Who holds a lease, and its end: seconds since 1970 by the database's clock."""

    holder: str
    until_s: float


class LeaseLedger(Protocol):
    """The part of `Ledger` that locks and leases use."""

    @property
    def file(self) -> Path | None: ...  # noqa: D102
    def claim_lease(self, name: str, holder: str, for_s: float) -> bool: ...  # noqa: D102
    def release(self, name: str, holder: str) -> None: ...  # noqa: D102
    def leases(self) -> dict[str, LedgerLease]: ...  # noqa: D102


def make_holder_name() -> str:
    """Return a new name for a holder of leases, host:pid:token. No other call returns the same name, on any host."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


@cache
def current_process() -> str:
    """Return the name under which this process holds leases."""
    return make_holder_name()


@contextmanager
def hold_controller_lock(
    home: Path, ledger: LeaseLedger | None = None, fix: str = OTHER_CONTROLLER_FIX
) -> Iterator[None]:
    """Be the only controller of an SQLite ledger: lock `home` (`.assay/`), and the ledger's file if it is elsewhere.

    Raises AssayError if another controller holds the lock, with its process, host, command and start.
    """
    file = ledger.file if ledger else None
    elsewhere = [Path(f"{file}.controller.lock")] if file and file.parent.resolve() != home.resolve() else []
    typed = redact(shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]))[:120]
    at = datetime.now(UTC).isoformat(timespec="seconds")
    note = json.dumps({"process": os.getpid(), "host": socket.gethostname(), "since": at, "typed": typed})
    with ExitStack() as stack:
        for path in (home / "controller.lock", *elsewhere):
            stack.enter_context(hold_file_lock(path, 0, partial(_refuse_controller, path, fix), note))
        yield


def _refuse_controller(path: Path, fix: str, holder: str) -> AssayError:
    try:
        by = json.loads(holder)
        who = (
            f"process {by['process']} on {by['host']}, `{by['typed']}`, since {by['since'][:16].replace('T', ' ')} UTC"
        )
    except (ValueError, KeyError, TypeError):  # it may not have written its note yet
        who = "process unknown"
    return AssayError(f"another controller ({who}) works on this ledger", where=str(path), fix=fix)


@contextmanager
def hold_section(engine: sa.Engine, name: str, turn: threading.Lock, patience_s: float) -> Iterator[None]:
    """Hold the section `name` of this ledger; raises AssayError if it is not free within `patience_s` seconds.

    `turn` lets the threads of this process in one at a time, so that waiting threads take no connections from others.
    """
    if not turn.acquire(timeout=patience_s):
        raise AssayError(f"another thread holds the section {name!r} of the ledger", fix="wait for it")
    try:
        if engine.dialect.name == "postgresql":  # the server ends the lock when it loses the connection
            with translate_errors(engine), engine.connect() as connection:
                connection.execute(sa.text(f"SET LOCAL lock_timeout = {round(patience_s * 1000)}"))
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"), {"name": name})
                yield
        else:
            path = Path(f"{engine.url.database}.{name}.lock")
            problem, fix = (
                "another process does not let go of its turn",
                "wait for it, or end the process that holds it",
            )
            refusal = AssayError(problem, where=str(path), fix=fix)
            with hold_file_lock(path, patience_s, lambda _: refusal, poll_s=SECTION_POLL_S):
                yield
    finally:
        turn.release()


def claim_lease(connection: sa.Connection, name: str, holder: str, for_s: float) -> bool:
    """Take or renew a lease for `for_s` seconds; return False while another holder has it."""
    table, now = tables.leases, _database_time(connection)
    statement = insert_or_update(connection, table).values(name=name, holder=holder, until_s=now + for_s)
    fresh = statement.excluded
    ours = (table.c.holder == fresh.holder) | (table.c.until_s <= now)
    taken = {"holder": fresh.holder, "until_s": fresh.until_s}
    statement = statement.on_conflict_do_update(index_elements=["name"], set_=taken, where=ours)
    return connection.execute(statement.returning(table.c.name)).first() is not None


def release_lease(connection: sa.Connection, name: str, holder: str) -> None:
    """End a lease at once, if this holder has it."""
    table = tables.leases
    connection.execute(sa.delete(table).where(table.c.name == name, table.c.holder == holder))


def list_leases(connection: sa.Connection) -> dict[str, LedgerLease]:
    """Return the leases that are held now, by name."""
    table = tables.leases
    rows = connection.execute(
        sa.select(table).where(table.c.until_s > _database_time(connection)).order_by(table.c.name)
    )
    return {row.name: LedgerLease(row.holder, row.until_s) for row in rows}


def _database_time(connection: sa.Connection) -> sa.ColumnElement[Any]:
    if connection.dialect.name == "postgresql":
        return sa.cast(sa.extract("epoch", sa.func.clock_timestamp()), sa.Float)
    return sa.literal_column("(julianday('now') - 2440587.5) * 86400.0", sa.Float)


class LeaseRenewal:
    """A thread that calls `renew` every `every_s` real seconds, as long as the `with` block lasts."""

    def __init__(self, renew: Callable[[], object], every_s: float) -> None:
        self._renew = renew
        self._every_s = every_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease renewal", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._every_s):
            with suppress(AssayError):  # the next use of the ledger reports it; without renewal the lease ends
                self._renew()


@contextmanager
def hold_lease(ledger: LeaseLedger, name: str, for_s: float) -> Iterator[bool]:
    """Hold a lease and renew it while the block lasts; yields False if another holder has it.

    Every call is a separate holder, so two threads of one process exclude each other.
    """
    holder = make_holder_name()
    if not ledger.claim_lease(name, holder, for_s):
        yield False
        return
    try:
        with LeaseRenewal(lambda: ledger.claim_lease(name, holder, for_s), for_s / 4):
            yield True
    finally:
        with suppress(AssayError):  # it ends by itself
            ledger.release(name, holder)


class NodeLeaseHolder(NamedTuple):
    """The process that holds a node, and the place of its locks: `home`, and the identity of that folder and boot."""

    host: str
    pid: int
    home: str
    home_identity: str

    @classmethod
    def of_this_process(cls, home: Path) -> NodeLeaseHolder:
        """Return this process as a holder."""
        return cls(socket.gethostname(), os.getpid(), str(home.absolute()), _identify_folder(home))

    def is_on_this_host(self) -> bool:
        """Whether its `home` is the same folder here. If so, its file locks show whether it is still at work."""
        return _identify_folder(Path(self.home)) == self.home_identity


def _identify_folder(home: Path) -> str:
    """Return boot, device and inode of a folder, "" for none. In another kernel or container, they differ."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    try:
        at = home.stat()
    except OSError:
        return ""
    return f"{boot}/{at.st_dev}/{at.st_ino}"


@contextmanager
def hold_node_lease(
    ledger: LeaseLedger, home: Path, node: str, deadline_s: float, progress: Callable[[str], None]
) -> Iterator[None]:
    """Hold the lease `hands/NODE`: across all controllers, only one attempt at a time works on a node.

    An attempt ends at the latest `deadline_s` real seconds after its begin. If a killed controller left a process at
    work, this function waits for it: on this machine until its file locks are free, on another machine until the lease
    ends. Raises AssayError if this machine's lock of the node is held for longer than `deadline_s`.
    """
    lease = f"hands/{node}"
    holder = NodeLeaseHolder.of_this_process(home)
    us = json.dumps(holder._asdict())
    shown = ""
    with hold_file_lock(home / "locks" / f"{node}.hands"):
        while not ledger.claim_lease(lease, us, deadline_s):
            if (held := ledger.leases().get(lease)) is None:
                continue
            them = NodeLeaseHolder(**json.loads(held.holder))
            if them.is_on_this_host():
                with ExitStack() as stack:  # first its process, then what that may have left at work
                    if them.home != holder.home:  # our own folder's lock is held already
                        stack.enter_context(hold_file_lock(Path(them.home, "locks", f"{node}.hands")))
                    stack.enter_context(hold_node_lock(Path(them.home), node, deadline_s))
                ledger.release(lease, held.holder)
                continue
            if held.holder != shown:
                until = time.strftime("%H:%M:%S UTC", time.gmtime(held.until_s))
                who = f"process {them.pid} on {them.host}"
                progress(f"{node}: {who} may still be at work on it: waits until {until}, its deadline")
                shown = held.holder
            time.sleep(LEASE_POLL_S)
        try:
            yield
        finally:
            with suppress(AssayError):  # it ends by itself at the deadline
                ledger.release(lease, us)
