"""Opens an SQLite ledger for reading where nobody can write: a full or read-only disk, a lock, a file of somebody else.

SQLite writes `-shm` beside a ledger even to read it. Where that fails, the ledger is read from a copy with its
write-ahead log, in memory or in the folder for temporary files. On a read-only file system without a log it is read as
it is.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
import warnings
import weakref
from collections.abc import Iterator
from pathlib import Path

from assay.ledger.errors import LedgerError, LedgerReadWarning, describe_storage, make_no_read_error

COPIED = ("", "-wal", "-journal")
"""Endings of the files that make up a ledger; SQLite makes `-shm` anew."""
COPY_ATTEMPTS = 20
SETTLE_NS = 20_000_000
"""A file that was written so recently may be written again without a later time: clocks of files tick slowly."""
SPARE_BYTES = 1 << 20
"""Bytes that a copy leaves free where it is made, for SQLite's own files."""
MEMORY_FOLDER = Path("/dev/shm")  # noqa: S108 — a folder of ours is made in it
_OBSTACLES = ("unable to open", "disk I/O error", "is locked", "readonly database", "disk is full")
HELD_PATIENCE_S = 0.1
"""How long to wait for a lock that this process has waited for before: people wait once, not for each question."""
FileStamps = tuple[tuple[int, int] | None, ...]

_held_files: set[str] = set()
"""The files on whose lock this process has waited in vain."""


class SqliteSource:
    """The way to read one ledger file. The first connection finds it, and later ones use it.

    A copy is removed together with this object.
    """

    def __init__(self, file: Path, patience_s: float) -> None:
        self._file = file.resolve()
        self._patience_s = patience_s
        self._uri = ""

    def connect(self) -> sqlite3.Connection:
        """Return a connection. Raises sqlite3.Error for a file that is damaged or no ledger, LedgerError otherwise."""
        if not self._uri:
            return self._find_way()
        return self._open(self._uri)

    def _find_way(self) -> sqlite3.Connection:
        in_place = f"{self._file.as_uri()}?mode=rw"
        try:
            connection = self._open(in_place)
        except sqlite3.OperationalError as error:
            message = str(error)
            if not any(sign in message for sign in _OBSTACLES):
                raise
            if "is locked" in message:
                _held_files.add(str(self._file))
            return self._find_detour(message)
        self._uri = in_place
        if trouble := describe_storage(str(self._file)):
            _warn(f"{trouble}: nothing can be recorded until that changes")
        return connection

    def _find_detour(self, message: str) -> sqlite3.Connection:
        try:
            # frozen: nobody can change the file, and no log beside it holds more of it
            logs = [Path(f"{self._file}{ending}") for ending in COPIED[1:]]
            is_frozen = "read-only" in describe_storage(str(self._file)) and not any(_size(log) for log in logs)
            uri = f"{self._file.as_uri()}?immutable=1" if is_frozen else self._copy()
        except OSError as error:
            raise make_no_read_error(str(self._file), error.strerror or str(error)) from error
        connection = self._open(uri)
        self._uri = uri
        trouble = describe_storage(str(self._file)) or self._describe_obstacle(message)
        how = "it was read as it is" if "immutable" in uri else "it was read from a copy"
        _warn(f"{trouble}: {how}, and nothing can be recorded until that changes")
        return connection

    def _describe_obstacle(self, message: str) -> str:
        if "is locked" in message:
            return f"another process holds {self._file} locked"
        if not (os.access(self._file, os.W_OK) and os.access(self._file.parent, os.W_OK)):
            return f"this user may not write {self._file} or its folder"
        return f"{self._file}: SQLite cannot open it in place ({message})"

    def _copy(self) -> str:
        """Copy the files of a moment in which nobody writes, and return the URI of the copy."""
        folder = tempfile.mkdtemp(prefix="assay-ledger-", dir=self._find_room())
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        copy = Path(folder, "ledger.sqlite")
        for _ in range(COPY_ATTEMPTS):
            before = self._stamps()
            if any(stamp and stamp[0] > time.time_ns() - SETTLE_NS for stamp in before):
                time.sleep(SETTLE_NS / 1e9)
                continue
            for ending in COPIED:
                source = Path(f"{self._file}{ending}")
                Path(f"{copy}{ending}").unlink(missing_ok=True)
                if source.exists():
                    shutil.copyfile(source, f"{copy}{ending}")
            if self._stamps() == before:
                return f"{copy.as_uri()}?mode=rw"
        problem = "another process holds the ledger locked and writes to it all the time"
        raise LedgerError(problem, where=str(self._file), fix="wait for it, or end the process that holds it")

    def _find_room(self) -> Path:
        needed = sum(_size(Path(f"{self._file}{ending}")) for ending in COPIED) + SPARE_BYTES
        for folder in _list_folders():
            if shutil.disk_usage(folder).free > needed:
                return folder
        problem = f"no folder has {needed:,} bytes free for a copy of the ledger, which cannot be read in place"
        raise LedgerError(
            problem, where=str(self._file), fix="make room on its disk, or name another one: TMPDIR=/a/folder"
        )

    def _stamps(self) -> FileStamps:
        return tuple(_stamp(Path(f"{self._file}{ending}")) for ending in COPIED)

    def _open(self, uri: str) -> sqlite3.Connection:
        patience_s = min(self._patience_s, HELD_PATIENCE_S) if str(self._file) in _held_files else self._patience_s
        connection = sqlite3.connect(uri, uri=True, timeout=patience_s, check_same_thread=False, isolation_level=None)
        try:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error:
            connection.close()
            raise
        return connection


def _list_folders() -> Iterator[Path]:
    if MEMORY_FOLDER.is_dir():
        yield MEMORY_FOLDER
    try:
        yield Path(tempfile.gettempdir())
    except OSError:  # no folder for temporary files can be written
        return


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_size


def _size(file: Path) -> int:
    stamp = _stamp(file)
    return stamp[1] if stamp else 0


def _warn(text: str) -> None:
    warnings.warn(LedgerReadWarning(text), stacklevel=2)
