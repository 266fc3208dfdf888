"""Compares archives with the ledger that they came from, and finds what of a node's history stands in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from assay.ledger import tables
from assay.ledger.connection import open_reading_engine, open_snapshot, parse_ledger_url
from assay.ledger.copies.archived_bodies import ARCHIVE_MARK, is_in_ledger, list_archives
from assay.ledger.copies.entry_archive import FIELDS, LINES_AT_ONCE, hash_archive, hash_before, read_archive, read_rows
from assay.ledger.hash_chain import hash_line
from assay.ledger.newest.interned_texts import split_batches
from assay.model.entries.operator_entries import EntriesArchivedEntry
from assay.model.errors import AssayError


class CheckedArchive(NamedTuple):
    """An archive, and whether its entries are those of the ledger. `is_here`: the file was found."""

    file: str
    entries: int
    is_here: bool
    problems: tuple[str, ...] = ()


def check_archives(where: Path | str, files: Sequence[Path]) -> list[CheckedArchive]:
    """Compare every archive of a ledger with it: the files that are given, else those where they were written."""
    engine = open_reading_engine(parse_ledger_url(where))
    with open_snapshot(engine) as connection:
        told = list_archives(connection)
        sums = {hash_archive(file): file for file in files}
        checked = [_check(connection, number, one, sums) for number, one in enumerate(told, 1)]
    engine.dispose()
    for known in {one.sha256 for one in told} & sums.keys():
        del sums[known]
    problem = "{}: this is no archive of the ledger, or somebody changed it"
    return [*checked, *(CheckedArchive(str(file), 0, True, (problem.format(file),)) for file in sums.values())]


class ArchivedHistory(NamedTuple):
    """How many entries of a node stand in an archive, and the time of the last of them."""

    file: str
    entries: int
    until: str


def find_archived_history(where: Path | str, node: str) -> list[ArchivedHistory]:
    """Return in which archives older entries of a node stand."""
    engine, table = open_reading_engine(parse_ledger_url(where)), tables.entries.c
    query = select(table.body, func.count(), func.max(table.at)).where(table.node == node, ~is_in_ledger(table.body))
    with open_snapshot(engine) as connection:
        rows = connection.execute(query.group_by(table.body)).all()
        files = {f"{ARCHIVE_MARK}{number}": one.file for number, one in enumerate(list_archives(connection), 1)}
    engine.dispose()
    found = [ArchivedHistory(files.get(mark, "unknown"), entries, until) for mark, entries, until in rows]
    return sorted(found, key=lambda one: one.until)


def _check(connection: Connection, number: int, told: EntriesArchivedEntry, sums: dict[str, Path]) -> CheckedArchive:
    file = sums.get(told.sha256) or Path(told.file)
    if not file.is_file():
        return CheckedArchive(told.file, told.archived, is_here=False)
    if told.sha256 not in sums and hash_archive(file) != told.sha256:
        return CheckedArchive(str(file), told.archived, True, (f"{file}: somebody changed this archive",))
    try:
        problems = tuple(islice(_find_differences(connection, number, told, file), 3))
    except (OSError, EOFError, ValueError, KeyError, AssayError) as error:
        problems = (f"{file}: this archive cannot be read: {error}",)
    return CheckedArchive(str(file), told.archived, True, problems)


def _find_differences(connection: Connection, number: int, told: EntriesArchivedEntry, file: Path) -> Iterator[str]:
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
    if count != told.archived:
        yield f"{file}: it holds {count:,} entries, not {told.archived:,}"
