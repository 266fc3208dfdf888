"""Where a fleet's ledger is, and a quick look into it. An SQLite file is read with the standard library alone.

Loading SQLAlchemy takes longer than looking, so only a server's ledger loads it.

A state that follows from the ledger is kept in a file, for commands that begin later and only read:

    .assay/cache/states/NAME.VERSION.json
      {seq, hash, state}: `seq` is the number of the last entry that the state has, `hash` that of this entry

The ledger chains its hashes. So while entry `seq` has this hash, all entries before it are those from which the state
follows: a copy that was restored and went on, or another ledger, is folded anew. The file may be deleted at any time.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Collection, Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

from assay.ledger.errors import (
    LEDGER_VARIABLE,
    SCHEMA_VERSION,
    UPGRADED_VERSIONS,
    make_database_error,
    make_no_read_error,
    make_not_a_ledger_error,
    make_schema_version_error,
)
from assay.ledger.sqlite_source import SqliteSource
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry, StateForm

READ_TIMEOUT_S = 10.0
_ENTRIES = "SELECT id, at, kind, node, body, seq FROM entry WHERE body NOT LIKE '@%' AND seq > ?"
"""Leaves out the entries whose body stands in an archive, see `hash_chain.is_in_ledger`."""


def locate_ledger(home: Path, *, is_lab: bool = False) -> Path | str:
    """Return the location of the ledger of a fleet with the data folder `home`. A lab's is always in its home."""
    asked = "" if is_lab else os.environ.get(LEDGER_VARIABLE, "")
    return asked if is_server_url(asked) else Path(asked or home / "ledger.sqlite").absolute()


def locate_existing_ledger(home: Path, *, is_lab: bool = False) -> str:
    """Return the location of the ledger for readers that can do without one: "" if it has no file yet."""
    where = locate_ledger(home, is_lab=is_lab)
    return str(where) if is_server_url(where) or has_file(Path(where)) else ""


def has_file(file: Path) -> bool:
    """Whether there is a file. Raises AssayError if its folder cannot be read."""
    try:
        return file.exists()
    except OSError as error:
        raise make_no_read_error(str(file), error.strerror or str(error)) from error


def is_server_url(where: Path | str) -> bool:
    """Whether this is a URL."""
    return "://" in str(where)


def read_all_entries(where: Path | str) -> list[LedgerEntry]:
    """Return every entry, in order. Makes no file if there is none, and needs no right to write. Raises AssayError."""
    return open_source(where).entries()


def open_source(where: Path | str) -> EntrySource:
    """Open a ledger that is only read. Makes no file if there is none, and needs no right to write."""
    if not is_server_url(where):
        return SqliteEntries(Path(where))
    from assay.ledger.store import Ledger

    return Ledger.open_for_reading(where)


class SqliteEntries:
    """The entries of the ledger in a file; none where there is no file. Every method may raise AssayError."""

    def __init__(self, file: Path, patience_s: float = READ_TIMEOUT_S) -> None:
        self._file = file
        self._source = SqliteSource(file, patience_s)  # keeps a copy of the ledger as long as it lives

    def entries(self, *, kinds: Collection[str] = (), after: int = 0, most: int | None = None) -> list[LedgerEntry]:
        """Return entries in order: of some kinds, with numbers above `after`; the first `most`."""
        marks = f" AND kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
        limit = "" if most is None else f" LIMIT {most:d}"
        rows = self._ask(f"{_ENTRIES}{marks} ORDER BY seq{limit}", (after, *sorted(kinds)))
        return [LedgerEntry(id_, at, kind, node, json.loads(body), seq) for id_, at, kind, node, body, seq in rows]

    def hash_of(self, seq: int) -> str | None:
        """Return the hash of an entry, None where there is none of that number."""
        return next((str(digest) for (digest,) in self._ask("SELECT hash FROM entry WHERE seq = ?", (seq,))), None)

    def _ask(self, question: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        if not has_file(self._file):
            return []
        try:
            with closing(self._source.connect()) as database:
                _check_schema(database, str(self._file))
                return database.execute(question, values).fetchall()
        except sqlite3.Error as error:
            raise make_database_error(str(error), str(self._file)) from error


def _check_schema(database: sqlite3.Connection, where: str) -> None:
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    if "assay_ledger" not in tables:
        raise make_not_a_ledger_error(tables, where)
    ((version,),) = database.execute("SELECT version FROM assay_ledger")
    if version not in (SCHEMA_VERSION, *UPGRADED_VERSIONS):
        raise make_schema_version_error(version, where)


S = TypeVar("S")
WORTH_KEEPING = 5_000
"""So many new entries take longer to fold than a state takes to write."""
DELETED_AFTER_S = 7 * 86_400.0
"""The file of another version is deleted after so long: two versions may work on one fleet for a while."""


class EntrySource(Protocol):
    """A ledger that is read."""

    def entries(self, *, kinds: Collection[str] = (), after: int = 0, most: int | None = None) -> list[LedgerEntry]:
        """Return entries in order: of some kinds, with numbers above `after`; the first `most`."""

    def hash_of(self, seq: int) -> str | None:
        """Return the hash of an entry, None where there is none of that number."""


def read_stored_state(form: StateForm[S], folder: Path, source: EntrySource) -> S:
    """Return the state as of now: the one that is kept, with the entries since then. Keep it if that is worth it."""
    file = folder / f"{form.name}.{form.version}.json"
    seq, state = _load(form, file, source)
    entries = source.entries(kinds=form.projection.kinds, after=seq)
    state = form.projection.fold(entries, state)
    if len(entries) >= WORTH_KEEPING and (last := source.hash_of(entries[-1].seq)):
        with suppress(OSError):  # a full or read-only disk costs time, not the answer
            _write(file, [{"seq": entries[-1].seq, "hash": last}, *form.encode(state)])
            for other in file.parent.glob(f"{form.name}.*"):  # what another version of assay kept
                if other != file and time.time() - other.stat().st_mtime > DELETED_AFTER_S:
                    other.unlink()
    return state


def _load(form: StateForm[S], file: Path, source: EntrySource) -> tuple[int, S]:
    try:
        first, *lines = file.read_bytes().decode("ascii").split("\n")
        kept = json.loads(first)
        if source.hash_of(kept["seq"]) == kept["hash"]:
            return int(kept["seq"]), form.decode(lines)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # none, or none that this version wrote
        pass
    return 0, form.projection.initial()


def _write(file: Path, lines: Iterable[Any]) -> None:
    """Replace the file at once. Of two that write, the last one wins."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(f".{os.getpid()}")
    draft.write_text("\n".join(json.dumps(line, separators=(",", ":")) for line in lines))
    draft.replace(file)


def is_mixed(home: Path) -> bool:
    """Whether a lab of an earlier version ran in this home of a fleet."""
    return (home / "lab").is_dir()


def make_mixed_error(home: Path) -> AssayError:
    """Return the error for a command that would act on what a rehearsal wrote."""
    problem = "a lab of an earlier version wrote into this home: its ledger holds rehearsed faults, orders and passes"
    return AssayError(
        problem,
        where=str(home),
        fix=f"put it aside as a whole: mv {home.name} {home.name}-mixed-1; the fleet then begins a new ledger",
    )
