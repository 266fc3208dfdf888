"""How an entry looks whose body stands in an archive: it keeps its number, id, time, kind, node and hash.

In place of its body it has `@` and the number of the archive. So an id is never used twice, seals still find their
hash, and the chain has no gap. An `entries.archived` entry covers what is left of these entries by a digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, Connection, select

from assay.ledger import tables
from assay.ledger.newest.interned_texts import split_batches
from assay.model.entries.node_entries import EntriesArchivedEntry
from assay.model.errors import AssayError

ARCHIVE_MARK = "@"
"""Begins the column `body` of an archived entry; the body of any other is a JSON object."""
ROWS_AT_ONCE = 500


def is_in_ledger(body: ColumnElement[str]) -> ColumnElement[bool]:
    """Return the condition for entries whose body is here."""
    return body.not_like(f"{ARCHIVE_MARK}%")


def list_archives(connection: Connection) -> list[EntriesArchivedEntry]:
    """Return what the ledger says of its archives: number 1 first. Leaves out an entry that somebody changed."""
    table = tables.entries.c
    query = select(table.body).where(table.kind == EntriesArchivedEntry.kind).order_by(table.seq)
    archives = []
    for body in connection.execute(query).scalars():
        try:
            archives.append(EntriesArchivedEntry.from_body(json.loads(body)))
        except (AssayError, ValueError):
            continue  # the chain of entries shows the change
    return archives


class RestDigest:
    """A digest of the entries up to a number, as they are now: with their hashes, and what stands for their bodies."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, row: Iterable[Any]) -> None:
        """Add the next row: number, hashed fields, hash."""
        self._digest.update(json.dumps(list(row), ensure_ascii=False).encode() + b"\n")

    def hexdigest(self) -> str:
        """Return the digest."""
        return self._digest.hexdigest()


def put_marks(connection: Connection, numbers: Iterable[int], archive: int) -> int:
    """Put the mark of an archive in place of the bodies of these entries; return how many had a body.

    `connection` is in the writing transaction.
    """
    table = tables.entries
    mark = f"{ARCHIVE_MARK}{archive}"
    changed = 0
    lifted, restored = tables.suspend_update_guard(connection.dialect.name, table)
    connection.exec_driver_sql(lifted)
    for some in split_batches(numbers, ROWS_AT_ONCE):
        wanted = table.c.seq.in_(some), is_in_ledger(table.c.body)
        changed += connection.execute(table.update().where(*wanted).values(body=mark)).rowcount
    connection.exec_driver_sql(restored)
    return changed
