"""Moves old entries on which nothing rests any more into an archive: one compressed file, whose hash the ledger keeps.

States, tickets, rollouts, parts and coverage follow from the other kinds of entries, which always stay. The file is
gzip of JSON, a document a line: first what it is, then an entry with the hash before it and its own. So each line
proves itself, without the ledger and without assay. Archives are compared with the ledger that they came from, and tell
what of a node's history stands in them.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select

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
from assay.ledger.copies.backup import new_file
from assay.ledger.errors import BrokenLedgerError
from assay.ledger.hash_chain import (
    ARCHIVABLE_KINDS,
    ARCHIVE_MARK,
    HASHED_FIELDS,
    SLOT_KINDS,
    HashChain,
    RestDigest,
    hash_line,
    insert_entries,
    is_in_ledger,
    list_archives,
    put_marks,
)
from assay.ledger.newest.interned_texts import split_batches
from assay.model.entries.node_entries import EntriesArchivedEntry
from assay.model.entries.schedule_entries import ScheduleRanEntry
from assay.model.errors import AssayError
from assay.model.facts import fact
from assay.model.ledger_entry import derive_id
from assay.model.timestamps import parse_time

FORMAT = "assay-ledger-archive"
LINES_AT_ONCE = 400
FIELDS = ("seq", *HASHED_FIELDS["entry"], "hash")


class OldEntry(NamedTuple):
    """An entry that may be archived."""

    seq: int
    at: str
    kind: str
    body: str


def find_archivable(connection: Connection, before: datetime) -> list[OldEntry]:
    """Return the entries before a time that may be archived, in order."""
    table = tables.entries.c
    query = select(table.seq, table.at, table.kind, table.body).where(
        table.kind.in_(ARCHIVABLE_KINDS), is_in_ledger(table.body)
    )
    rows = [OldEntry(*row) for row in connection.execute(query.order_by(table.seq))]
    kept = {entry.seq for entry in _find_needed_slots(row for row in rows if row.kind in SLOT_KINDS)}
    return [row for row in rows if row.seq not in kept and parse_time(row.at) < before]


def _find_needed_slots(rows: Iterable[OldEntry]) -> Iterator[OldEntry]:
    """Yield the entries of the newest slot of each schedule and target, and of slots that have not ended."""
    lines: dict[tuple[str, str], dict[str, list[OldEntry]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        body = json.loads(row.body)
        lines[body["schedule"], body["part"]][body.get("slot", "")].append(row)
    for slots in lines.values():
        newest = max(slots, key=parse_time)
        for slot, entries in slots.items():
            has_ended = entries[-1].kind == ScheduleRanEntry.kind
            if slot == newest or not has_ended:
                yield from entries


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
    archives = list_archives(connection)
    if put_marks(connection, [row.seq for row in old], len(archives) + 1) != len(old):
        raise AssayError("others archived some of these entries meanwhile", where=entry.file, fix="delete this file")
    through = max(entry.through, *(archive.through for archive in archives), 0)
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


@fact
class CheckedArchive:
    """An archive of old entries."""

    file: str
    """Where the archive is or was."""
    entries: int
    """How many entries it holds."""
    is_here: bool
    """Whether the file was found; without it, nobody can verify these entries."""
    problems: tuple[str, ...] = ()
    """What is wrong with it."""


def check_archives(where: Path | str, files: Sequence[Path]) -> list[CheckedArchive]:
    """Compare every archive of a ledger with it: the files that are given, else those where they were written."""
    engine = open_reading_engine(parse_ledger_url(where))
    with open_snapshot(engine) as connection:
        archives = list_archives(connection)
        sums = {hash_archive(file): file for file in files}
        checked = [_check(connection, number, archive, sums) for number, archive in enumerate(archives, 1)]
    engine.dispose()
    for known in {archive.sha256 for archive in archives} & sums.keys():
        del sums[known]
    problem = "{}: this is no archive of the ledger, or somebody changed it"
    return [*checked, *(CheckedArchive(str(file), 0, True, (problem.format(file),)) for file in sums.values())]


@fact
class ArchivedHistory:
    """Entries of a node that were moved into an archive."""

    file: str
    """The archive."""
    entries: int
    """How many entries of the node it holds."""
    until: str
    """The time of the last of them: ISO 8601 UTC."""


def find_archived_history(where: Path | str, node: str) -> list[ArchivedHistory]:
    """Return in which archives older entries of a node stand."""
    engine, table = open_reading_engine(parse_ledger_url(where)), tables.entries.c
    query = select(table.body, func.count(), func.max(table.at)).where(table.node == node, ~is_in_ledger(table.body))
    with open_snapshot(engine) as connection:
        rows = connection.execute(query.group_by(table.body)).all()
        files = {f"{ARCHIVE_MARK}{number}": archive.file for number, archive in enumerate(list_archives(connection), 1)}
    engine.dispose()
    histories = [ArchivedHistory(files.get(mark, "unknown"), entries, until) for mark, entries, until in rows]
    return sorted(histories, key=lambda history: history.until)


def _check(connection: Connection, number: int, archive: EntriesArchivedEntry, sums: dict[str, Path]) -> CheckedArchive:
    file = sums.get(archive.sha256) or Path(archive.file)
    if not file.is_file():
        return CheckedArchive(archive.file, archive.archived, is_here=False)
    if archive.sha256 not in sums and hash_archive(file) != archive.sha256:
        return CheckedArchive(str(file), archive.archived, True, (f"{file}: somebody changed this archive",))
    try:
        problems = tuple(islice(_find_differences(connection, number, archive, file), 3))
    except (OSError, EOFError, ValueError, KeyError, AssayError) as error:
        problems = (f"{file}: this archive cannot be read: {error}",)
    return CheckedArchive(str(file), archive.archived, True, problems)


def _find_differences(connection: Connection, number: int, archive: EntriesArchivedEntry, file: Path) -> Iterator[str]:
    """Yield the entries of an archive whose hash is not the one that the ledger has."""
    count = 0
    for lines in split_batches(read_archive(file), LINES_AT_ONCE):
        rows = read_rows(connection, [line["seq"] for line in lines])
        for line in lines:
            count += 1
            row = rows.get(line["seq"])
            hash_ = hash_line(line["before"], [line[name] for name in FIELDS[:-1]])
            is_same = row and row[-1] == hash_ and hash_before(rows, line["seq"]) == line["before"]
            if not (row and is_same and row[FIELDS.index("body")] == f"{ARCHIVE_MARK}{number}"):
                yield f"{file}: entry {line['seq']} is not the one that the ledger knows"
    if count != archive.archived:
        yield f"{file}: it holds {count:,} entries, not {archive.archived:,}"
