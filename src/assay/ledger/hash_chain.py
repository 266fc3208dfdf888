"""The hash chains: each line holds a hash over its content and over the line before it.

Whoever changes, removes, swaps or inserts a line must therefore rebuild every later line, and `chain`, which holds the
end of each chain. Only a copy of the end that is kept elsewhere reveals such a rebuilt chain. `insert_entries` adds
entries to the ledger's table and its chain, each id once.

An entry whose body stands in an archive keeps its number, id, time, kind, node and hash. In place of its body it has
`@` and the number of the archive. So an id is never used twice, seals still find their hash, and the chain has no gap.
An `entries.archived` entry covers what is left of these entries by a digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, Table, bindparam, select, update

from assay.ledger import tables
from assay.ledger.newest.interned_texts import split_batches
from assay.model.entries.faults import ObservationFailedEntry
from assay.model.entries.node_entries import EntriesArchivedEntry, OutcomesPrunedEntry
from assay.model.entries.schedule_entries import (
    NodeUndrainedEntry,
    ScheduleRanEntry,
    ScheduleStartedEntry,
    VerificationMissedEntry,
)
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry

ChainName = Literal["entry", "run"]
_table = tables.chains.c
_END = select(_table.seq, _table.hash).where(_table.name == bindparam("of"))
_SAVE_END = (
    update(tables.chains).where(_table.name == bindparam("of")).values(seq=bindparam("at"), hash=bindparam("to"))
)
HASHED_FIELDS: dict[ChainName, tuple[str, ...]] = {
    "entry": ("id", "at", "kind", "node", "body"),
    "run": ("id", "at", "phases", "nodes", "spec_commit", "dirty", "suite_hash", "who", "texts", "outcomes", "digest"),
}
HASHED_OUTCOME_FIELDS = (
    "seq", "run", "measured_s", "check", "subject", "node", "verdict", "reason", "fault", "phases", "active",
    "evidence", "evidence_at", "basis", "judged_by", "micros",
)  # fmt: skip
"""By name, so that a new column changes no hash of older lines. Schema 4 had no `basis` and no `judged_by`."""
OUTCOME_COLUMNS = (*HASHED_OUTCOME_FIELDS, "numbers")
"""All columns of `outcome`; the hash covers `numbers` in a row for several subjects."""
LINES_AT_ONCE = 1000


class HashChain:
    """The growing end of one chain, inside the writing transaction."""

    def __init__(self, connection: Connection, of: ChainName) -> None:
        self._connection, self._of = connection, of
        self.seq, self.hash = connection.execute(_END, {"of": of}).one()

    def add(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the row as the next line, with its number and its hash."""
        self.seq += 1
        self.hash = hash_line(self.hash, (self.seq, *_get_hashed_fields[self._of](row)))
        return {**row, "seq": self.seq, "hash": self.hash}

    def save(self) -> None:
        """Store the present end of the chain."""
        self._connection.execute(_SAVE_END, {"of": self._of, "at": self.seq, "to": self.hash})


_get_hashed_fields = {of: itemgetter(*fields) for of, fields in HASHED_FIELDS.items()}


def hash_line(before: str, line: Iterable[object]) -> str:
    """Return the hash of a line that follows the line with the hash `before`. The line begins with its number."""
    return hashlib.sha256(_bytes((before, *line))).hexdigest()


class RunDigest:
    """A digest of a run: its outcomes, their measurements, and its new texts, each in their order."""

    def __init__(self) -> None:
        self._texts, self._outcomes, self._measured = (hashlib.sha256() for _ in range(3))

    def texts(self, lines: Iterable[Iterable[object]]) -> None:
        """Add new texts: number, key, long text."""
        for line in lines:
            self._texts.update(_bytes(line))

    def outcomes(self, lines: Iterable[Iterable[object]]) -> None:
        """Add outcomes, with their columns in the order of the table."""
        _update_with_numbers(self._outcomes.update, lines)

    def measured(self, lines: Iterable[Iterable[object]]) -> None:
        """Add measurements: outcome, gauge, value."""
        _update_with_numbers(self._measured.update, lines)

    def hexdigest(self) -> str:
        """Return the digest of everything added."""
        parts = (self._texts, self._outcomes, self._measured)
        return hashlib.sha256(b"".join(part.digest() for part in parts)).hexdigest()


def _bytes(line: Iterable[object]) -> bytes:
    """Return a line as bytes. No other line with the same number of values has this form, as none holds a NUL."""
    return "\0".join(map(str, line)).encode("utf-8", "surrogatepass")


_PLACEHOLDER = {"sqlite": "?", "postgresql": "%s"}
_ENTRY_COLUMNS = tables.entries.columns.keys()
_SELECT_KNOWN = {
    table.name: select(table.c.id).where(table.c.id.in_(bindparam("ids", expanding=True)))
    for table in (tables.entries, tables.runs)
}


def _update_with_numbers(update: Callable[[bytes], object], lines: Iterable[Iterable[object]]) -> None:
    """Add lines of numbers to a digest, many at once; numbers need no lengths."""
    texts = (repr(tuple(line)) for line in lines)
    while some := "".join(islice(texts, LINES_AT_ONCE)):
        update(some.encode())


def insert_entries(connection: Connection, chain: HashChain, entries: Sequence[LedgerEntry]) -> Collection[str]:
    """Insert many entries at once, in order; return the new ids. If an id occurs twice, the first entry counts."""
    known = find_known_ids(connection, tables.entries, [entry.id for entry in entries])
    new: dict[str, tables.TableRow] = {}
    for entry in entries:
        if entry.id not in known and entry.id not in new:
            new[entry.id] = chain.add(tables.entry_to_row(entry))
    if new:
        # one statement of the driver: SQLAlchemy's statement takes longer per entry than its hash
        marks = ", ".join([_PLACEHOLDER[connection.dialect.name]] * len(_ENTRY_COLUMNS))
        rows = ", ".join([f"({marks})"] * len(new))
        statement = f"INSERT INTO entry ({', '.join(_ENTRY_COLUMNS)}) VALUES {rows}"  # noqa: S608
        connection.exec_driver_sql(statement, tuple(line[name] for line in new.values() for name in _ENTRY_COLUMNS))
    return new.keys()


def find_known_ids(connection: Connection, table: Table, ids: Sequence[str]) -> set[str]:
    """Return the ids that the table already has."""
    return set(connection.execute(_SELECT_KNOWN[table.name], {"ids": ids}).scalars())


SLOT_KINDS = (ScheduleStartedEntry.kind, ScheduleRanEntry.kind)
ARCHIVABLE_KINDS = (ObservationFailedEntry.kind, NodeUndrainedEntry.kind, VerificationMissedEntry.kind, *SLOT_KINDS)
"""Kinds that are read to tell history; of slots also to find the next one, by the newest slot of each schedule."""
REMOVING_KINDS = (OutcomesPrunedEntry.kind, EntriesArchivedEntry.kind)
"""Entries that say of earlier lines that they are here no more. Whoever forges one hides a change behind it, so only
a seal that covers the entry makes it true of what was sealed before."""
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
