"""Moves old entries into an archive: one compressed file, whose hash the ledger keeps.

The file is gzip of JSON, a document a line: first what it is, then an entry with the hash before it and its own. So
each line proves itself, without the ledger and without assay.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from assay.ledger import tables
from assay.ledger.chain_verification import ENTRY_LINE, find_chain_problems
from assay.ledger.connection import (
    give_back_space,
    name_ledger,
    open_engine,
    open_reading_engine,
    open_snapshot,
    open_writer,
    parse_ledger_url,
)
from assay.ledger.copies.archivable_entries import OldEntry, find_archivable
from assay.ledger.copies.archived_bodies import RestDigest, list_archives, put_marks
from assay.ledger.copies.new_file import new_file
from assay.ledger.entry_insertion import insert_entries
from assay.ledger.errors import BrokenLedgerError
from assay.ledger.hash_chain import HASHED_FIELDS, HashChain
from assay.ledger.newest.interned_texts import split_batches
from assay.model.entries.operator_entries import EntriesArchivedEntry
from assay.model.errors import AssayError
from assay.model.ledger_entry import derive_id

FORMAT = "assay-ledger-archive"
LINES_AT_ONCE = 400
FIELDS = ("seq", *HASHED_FIELDS["entry"], "hash")


class ArchivePlan(NamedTuple):
    """What an archive holds or would hold: its entries by kind, the time of the last one, and bytes of their bodies."""

    kinds: dict[str, int]
    until: str
    size: int

    @property
    def entries(self) -> int:
        """How many entries it holds."""
        return sum(self.kinds.values())


def plan_archive(where: Path | str, before: datetime) -> ArchivePlan:
    """Return what `archive_entries` would move."""
    engine = open_reading_engine(parse_ledger_url(where))
    with open_snapshot(engine) as connection:
        plan = _describe(find_archivable(connection, before))
    engine.dispose()
    return plan


def archive_entries(where: Path | str, file: Path, before: datetime, who: str, now: datetime) -> ArchivePlan:
    """Move old entries into a new file, and note that in the ledger; return what was moved.

    The file is whole and on the disk before the ledger changes, in one transaction. Raises BrokenLedgerError for a
    ledger that cannot be verified: nobody could see later what was changed in it.
    """
    engine = open_engine(parse_ledger_url(where))
    with open_snapshot(engine) as connection:  # others may write while the ledger is verified, which takes a while
        old = find_archivable(connection, before)
        if problems := list(islice(find_chain_problems(connection), 1)):
            raise BrokenLedgerError(problems, name_ledger(engine))
        if old:
            with new_file(file) as part:
                sha256 = _write(connection, part, [entry.seq for entry in old], now)
    if old:
        content = EntriesArchivedEntry(old[-1].seq, len(old), "", str(file), sha256, who)
        with open_writer(engine) as connection:
            _replace(connection, old, content, now)
        give_back_space(engine)
    engine.dispose()
    return _describe(old)


def _describe(old: list[OldEntry]) -> ArchivePlan:
    kinds = dict(Counter(entry.kind for entry in old))
    return ArchivePlan(kinds, max((entry.at for entry in old), default=""), sum(len(entry.body) for entry in old))


def _write(connection: Connection, part: Path, numbers: list[int], now: datetime) -> str:
    with part.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
        about = {"format": FORMAT, "version": 1, "at": now.isoformat(), "entries": len(numbers), "fields": FIELDS}
        for line in (about, *_read_lines(connection, numbers)):
            packed.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
    return hash_archive(part)


def _read_lines(connection: Connection, numbers: list[int]) -> Iterator[dict[str, Any]]:
    for some in split_batches(numbers, LINES_AT_ONCE):
        rows = read_rows(connection, some)
        for number in some:
            yield {"before": hash_before(rows, number), **dict(zip(FIELDS, rows[number], strict=True))}


def read_rows(connection: Connection, numbers: list[int]) -> dict[int, tuple[Any, ...]]:
    """Return these entries and those before them, by number."""
    wanted = {*numbers, *(number - 1 for number in numbers)}
    query = select(*ENTRY_LINE).where(tables.entries.c.seq.in_(sorted(wanted)))
    return {row[0]: tuple(row) for row in connection.execute(query)}


def hash_before(rows: dict[int, tuple[Any, ...]], number: int) -> str:
    """Return the hash of the entry before one, "" before the first."""
    return rows[number - 1][-1] if number > 1 else ""


def _replace(connection: Connection, old: list[OldEntry], entry: EntriesArchivedEntry, now: datetime) -> None:
    """Put the archive's mark in place of the bodies, and append the entry that covers what is left."""
    if put_marks(connection, [one.seq for one in old], len(list_archives(connection)) + 1) != len(old):
        raise AssayError("others archived some of these entries meanwhile", where=entry.file, fix="delete this file")
    through = max(entry.through, *(one.through for one in list_archives(connection)), 0)
    digest = RestDigest()
    query = select(*ENTRY_LINE).where(tables.entries.c.seq <= through).order_by(tables.entries.c.seq)
    for row in connection.execute(query, execution_options={"yield_per": LINES_AT_ONCE}):
        digest.add(row)
    content = EntriesArchivedEntry(through, entry.archived, digest.hexdigest(), entry.file, entry.sha256, entry.who)
    chain, at = HashChain(connection, "entry"), now.isoformat()
    insert_entries(connection, chain, [content.make_entry(derive_id(content.kind, content.sha256, at), at)])
    chain.save()


def read_archive(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of an archive: `before`, `seq`, the fields of the entry, and `hash`. Raises AssayError."""
    with gzip.open(file, "rt", encoding="utf-8") as packed:
        about = json.loads(next(packed, "{}"))
        if about.get("format") != FORMAT or about.get("version") != 1:
            raise AssayError("this is no archive that this assay reads", where=str(file), fix="name another file")
        for line in packed:
            yield json.loads(line)


def hash_archive(file: Path) -> str:
    """Return the hash by which a ledger knows an archive. Raises AssayError."""
    try:
        with file.open("rb") as raw:
            return hashlib.file_digest(raw, "sha256").hexdigest()
    except OSError as error:
        raise AssayError(f"this archive cannot be read: {error.strerror}", where=str(file)) from error
