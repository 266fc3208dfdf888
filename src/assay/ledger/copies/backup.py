"""Backs a ledger up into one file, and restores it from such a file. Both are verified by the hash chains.

A backup is an SQLite ledger, whichever database it was made from. So it can be read as it is, and moves a ledger from
one database to the other. A new file gets its name when it is whole and on the disk, and replaces none: a kill leaves
no half backup and no half ledger.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, Engine, select

from assay.ledger import tables
from assay.ledger.chain_verification import MAX_PROBLEMS, find_chain_problems
from assay.ledger.connection import (
    name_ledger,
    open_engine,
    open_reader,
    open_reading_engine,
    open_snapshot,
    open_source_engine,
    open_writer,
    parse_ledger_url,
)
from assay.ledger.errors import BrokenLedgerError, LedgerError, make_database_error
from assay.ledger.schema_upgrade import copy_file, copy_into_new_file, copy_rows
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.ledger_entry import Context
from assay.model.text.lists import format_count


@contextmanager
def new_file(file: Path) -> Iterator[Path]:
    """Yield a file to write, which becomes `file` at the end, on the disk and at once. It never replaces one."""
    if file.exists():
        raise AssayError("there is such a file already", where=str(file), fix="name another one: none is overwritten")
    if not file.parent.is_dir():
        raise AssayError("there is no such folder", where=str(file.parent), fix="make it, or name another file")
    part = file.with_name(f".{file.name}.{secrets.token_hex(4)}.part")
    try:
        yield part
        _publish(part, file)
    except (OSError, sqlite3.Error) as error:
        raise make_database_error(str(error), str(file)) from error
    finally:
        for ending in ("", "-journal", "-wal", "-shm"):
            Path(f"{part}{ending}").unlink(missing_ok=True)


def _publish(part: Path, file: Path) -> None:
    for path, to_name in ((part, True), (file.parent, False)):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            if to_name:
                os.link(part, file)
        finally:
            os.close(descriptor)


ChainEnds = dict[str, tuple[int, str]]


class CopiedLedger(NamedTuple):
    """A ledger that was copied: how its chains end, and the schema version of the copy."""

    ends: ChainEnds
    version: int


def back_up(where: Path | str, file: Path) -> CopiedLedger:
    """Copy the ledger at `where`, as it is now, into a new file; others may write into it meanwhile.

    Raises BrokenLedgerError if the copy cannot be verified, and AssayError if there is such a file or no ledger.
    """
    engine = open_source_engine(parse_ledger_url(where))
    with new_file(file) as part, open_snapshot(engine) as source:
        if source.dialect.name == "postgresql":
            copy_into_new_file(source, part)
        else:
            copy_file(source, part)
        copied = _verify_file(part)
    engine.dispose()
    return copied


def restore(file: Path, where: Path | str, context: Context | None = None) -> CopiedLedger:
    """Make the ledger at `where` from a backup, which an older assay may have made. There must be no entry yet.

    Raises BrokenLedgerError if the backup cannot be verified, and AssayError if the ledger holds something, or if the
    backup was made in another `context`: a rehearsal's is not the fleet's.
    """
    url = parse_ledger_url(where)
    backup = _open_backup(file)
    try:
        Ledger(backup, context=context)
        if url.get_backend_name() == "sqlite" and not (place := Path(str(url.database))).exists():
            return _restore_file(backup, place)
        return _restore_rows(backup, open_engine(url), str(file))
    finally:
        backup.dispose()


def _open_backup(file: Path) -> Engine:
    try:
        return open_reading_engine(parse_ledger_url(file))
    except LedgerError as error:
        problem = error.what if file.exists() else "there is no such file"
        raise LedgerError(problem, where=str(file), fix="name a file that `assay ledger backup` made") from error


def _restore_file(backup: Engine, place: Path) -> CopiedLedger:
    place.parent.mkdir(parents=True, exist_ok=True)
    with new_file(place) as part:
        with open_reader(backup) as source:
            copy_file(source, part)
        return _verify_file(part)


def _restore_rows(backup: Engine, ledger: Engine, name: str) -> CopiedLedger:
    """Copy a backup into a ledger without entries, in one transaction."""
    with open_reader(backup) as source, open_writer(ledger) as target:
        _require_empty(target, name_ledger(ledger))
        copy_rows(source, target)
        copied = _verify(target, name)
    ledger.dispose()
    return copied


def _require_empty(target: Connection, name: str) -> None:
    ends: dict[str, int] = {row.name: row.seq for row in target.execute(select(tables.chains))}
    entries, runs = ends["entry"], ends["run"]
    if entries or runs:
        held = f"{entries:,} {'entry' if entries == 1 else 'entries'} and {format_count(runs, 'run')}"
        fix = "name another place, which holds no ledger: ASSAY_LEDGER; or move this one away"
        raise LedgerError(f"this ledger holds {held}; a backup replaces none", where=name, fix=fix)


def _verify_file(file: Path) -> CopiedLedger:
    with open_reader(open_source_engine(parse_ledger_url(file))) as connection:
        version: int = connection.execute(select(tables.schema_info.c.version)).scalar_one()
    engine = open_reading_engine(parse_ledger_url(file))
    with open_snapshot(engine) as connection:
        copied = _verify(connection, str(file))
    engine.dispose()
    return copied._replace(version=version)


def _verify(connection: Connection, name: str) -> CopiedLedger:
    if problems := list(islice(find_chain_problems(connection), MAX_PROBLEMS)):
        raise BrokenLedgerError(problems, name)
    ends = {row.name: (row.seq, row.hash) for row in connection.execute(select(tables.chains))}
    version: int = connection.execute(select(tables.schema_info.c.version)).scalar_one()
    return CopiedLedger(ends, version)
