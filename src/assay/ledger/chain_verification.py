"""Verifies the hash chains of a ledger: finds lines that somebody changed, removed, swapped or inserted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Boolean, Connection, Float, Integer, Row, Select, Text, except_, func, select
from sqlalchemy.types import TypeEngine

from assay.ledger import tables
from assay.ledger.hash_chain import (
    ARCHIVABLE_KINDS,
    ARCHIVE_MARK,
    HASHED_FIELDS,
    OUTCOME_COLUMNS,
    ChainName,
    RestDigest,
    RunDigest,
    hash_line,
    list_archives,
)
from assay.ledger.newest.grouped_rows import list_members
from assay.ledger.newest.interned_texts import make_key
from assay.ledger.newest.outcome_queries import NEWEST_COLUMNS, select_expected_newest
from assay.ledger.schema_upgrade import select_hashed_columns
from assay.model.entries.node_entries import OutcomesPrunedEntry
from assay.model.errors import AssayError

ROWS_PER_FETCH = 2000
"""Rows that are read at a time: a ledger need not fit into memory."""
ENTRY_LINE = (*(tables.entries.c[name] for name in ("seq", *HASHED_FIELDS["entry"], "hash")),)
"""The columns of an entry in the order in which they are hashed, then the hash."""
MAX_PROBLEMS = 100
"""Problems that are told; who finds so many knows enough."""
ChainRow = Row[Any]


def find_chain_problems(connection: Connection) -> Iterator[str]:
    """Yield every problem in one snapshot of the ledger: entries, runs, outcomes, and the tables derived from them."""
    if foreign := list(_find_foreign_values(connection)):
        yield from foreign  # nothing can be computed from them
        return
    archived = _ArchivedEntries(connection)
    yield from _check_chain(connection, "entry", archived.check_entry, archived.covers)
    parts = _open_contents(connection)
    parts.pruned = find_pruning(connection)
    yield from _check_chain(connection, "run", parts.check_run)
    yield from parts.find_orphans()
    yield from _check_long_texts(connection)
    yield from _check_members(connection)
    yield from _check_newest(connection)


_STORAGE_CLASSES: tuple[tuple[type[TypeEngine[Any]], str], ...] = (
    (Integer, "integer"),
    (Boolean, "integer"),
    (Float, "real"),
    (Text, "text"),
)


def _find_foreign_values(connection: Connection) -> Iterator[str]:
    """Yield the columns that hold a value of another type, which SQLite takes; PostgreSQL takes none."""
    if connection.dialect.name != "sqlite":
        return
    for table in tables.metadata.sorted_tables:
        for column in table.columns:
            allowed = [name for kind, name in _STORAGE_CLASSES if isinstance(column.type, kind)]
            allowed += ["null"] if column.nullable else []
            foreign = select(func.count()).select_from(table).where(func.typeof(column).not_in(allowed))
            if count := connection.execute(foreign).scalar_one():
                yield f"{count} of the column {column.name} of {table.name} were changed: they are no {allowed[0]}"


def _check_chain(
    connection: Connection,
    of: ChainName,
    inside: Callable[[ChainRow], Iterator[str]],
    is_incomplete: Callable[[ChainRow], bool] = lambda _: False,
) -> Iterator[str]:
    """Yield the places where a chain is broken; `inside` yields other problems of a line.

    The hash of a line that `is_incomplete` cannot be computed, and is taken as it is.
    """
    table, end = {"entry": tables.entries, "run": tables.runs}[of].c, tables.chains.c
    columns = (table.seq, *(table[name] for name in HASHED_FIELDS[of]), table.hash)
    seq, before = 0, ""
    for row in _stream_rows(connection, select(*columns).order_by(table.seq)):
        if row[0] != seq + 1:
            gap = f"{of} {seq + 1} is" if row[0] <= seq + 2 else f"{of} {seq + 1} to {row[0] - 1} are"
            yield f"{gap} missing before {_describe_row(of, row)}"
        if row[-1] != hash_line(before, row[:-1]) and not is_incomplete(row):
            yield f"{_describe_row(of, row)} was changed, or is not the one that was written after {of} {seq}"
        yield from inside(row)
        seq, before = row[0], row[-1]
    kept = connection.execute(select(end.seq, end.hash).where(end.name == of)).first()
    if kept is None or tuple(kept) != (seq, before):
        yield f"the chain ends with {of} {kept.seq if kept else 'unknown'}, not with {of} {seq}, the last that is here"


def _describe_row(of: ChainName, row: ChainRow) -> str:
    node = getattr(row, "node", "")
    shown = f"{row.kind}{node and ' of '}{node}" if of == "entry" else row.id
    return f"{of} {row.seq} ({shown}, {row.at})"


class _ArchivedEntries:
    """Entries whose bodies stand in archives: what is left of them is compared with the digest of the newest archive.

    Their own hash covers the body, so only the archive can prove it: see `copies.archive.check_archives`.
    """

    def __init__(self, connection: Connection) -> None:
        self._newest = next(reversed(list_archives(connection)), None)
        self._left = RestDigest()

    def covers(self, row: ChainRow) -> bool:
        """Whether the body of this entry stands in an archive."""
        return bool(self._newest and row.seq <= self._newest.through and row.body.startswith(ARCHIVE_MARK))

    def check_entry(self, row: ChainRow) -> Iterator[str]:
        if self._newest is None or row.seq > self._newest.through:
            return
        if self.covers(row) and row.kind not in ARCHIVABLE_KINDS:
            yield f"{_describe_row('entry', row)} has no body, and no archive takes entries of its kind"
        self._left.add(row)
        if row.seq == self._newest.through and self._left.hexdigest() != self._newest.digest:
            yield f"what was left of the entries up to {_describe_row('entry', row)} was changed"


class _Rows:
    """Rows that begin with their sort number, read up to a given number."""

    def __init__(self, rows: Iterator[ChainRow]) -> None:
        self._rows = rows
        self.next = next(rows, None)

    def take_until(self, last: int) -> Iterator[ChainRow]:
        while self.next is not None and self.next[0] <= last:
            yield self.next
            self.next = next(self._rows, None)


class _RunContents:
    """The contents of runs, compared with the runs' digests one after the other."""

    def __init__(self, texts: _Rows, outcomes: _Rows, measured: _Rows) -> None:
        self._texts = texts
        self._outcomes = outcomes
        self._measured = measured
        self.pruned: OutcomesPrunedEntry | None = None
        self._left = RunDigest()

    def check_run(self, run: ChainRow) -> Iterator[str]:
        if self.pruned is not None and run.seq <= self.pruned.through:
            self.add_to(self._left, run)
            if run.seq == self.pruned.through and self._left.hexdigest() != self.pruned.digest:
                yield f"what was left of the outcomes up to {_describe_row('run', run)} was changed"
            return
        digest = RunDigest()
        self.add_to(digest, run)
        if digest.hexdigest() != run.digest:
            yield f"what {_describe_row('run', run)} found was changed: its outcomes, their measurements or their words"

    def add_to(self, digest: RunDigest, run: ChainRow) -> None:
        """Add to a digest what no earlier call has added, up to the end of a run."""
        digest.texts(self._texts.take_until(run.texts))
        digest.outcomes(select_hashed_columns(self._outcomes.take_until(run.outcomes)))
        digest.measured(self._measured.take_until(run.outcomes))

    def find_orphans(self) -> Iterator[str]:
        for kind, rows in (("text", self._texts), ("outcome", self._outcomes), ("measurement", self._measured)):
            if rows.next is not None:
                yield f"there is a {kind} that no run brought: {dict(rows.next._mapping)}"


def find_pruning(connection: Connection) -> OutcomesPrunedEntry | None:
    """Return the newest entry about deleted outcomes, None where none were, or where somebody has changed it."""
    table = tables.entries.c
    query = select(table.body).where(table.kind == OutcomesPrunedEntry.kind).order_by(table.seq.desc()).limit(1)
    body = connection.execute(query).scalar()
    try:
        content = json.loads(body or "null")
        return OutcomesPrunedEntry.from_body(content) if isinstance(content, dict) else None
    except (AssayError, ValueError):
        return None  # the chain of entries shows the change


def digest_contents(connection: Connection, run: ChainRow) -> str:
    """Return the digest of the outcomes, measurements and texts of all runs up to one."""
    digest = RunDigest()
    _open_contents(connection).add_to(digest, run)
    return digest.hexdigest()


def _open_contents(connection: Connection) -> _RunContents:
    texts = tables.texts.c
    outcomes = tables.outcomes.c
    measured = tables.measurements.c
    return _RunContents(
        _Rows(_stream_rows(connection, select(texts.seq, texts.key, texts.long).order_by(texts.seq))),
        _Rows(_stream_rows(connection, select(*(outcomes[name] for name in OUTCOME_COLUMNS)).order_by(outcomes.seq))),
        _Rows(
            _stream_rows(connection, select(measured.outcome, measured.gauge, measured.value).order_by(measured.seq))
        ),
    )


def _check_long_texts(connection: Connection) -> Iterator[str]:
    """Yield the long texts that are not those of their keys: a digest of runs takes no text for the word "None"."""
    table = tables.texts.c
    long_ones = select(table.seq, table.key, table.long).where(table.long.is_not(None))
    for row in _stream_rows(connection, long_ones):
        if make_key(row.long) != row.key:
            yield f"text {row.seq} was changed: it is not the one that its key names"


def _check_members(connection: Connection) -> Iterator[str]:
    """Yield the lists of subjects that are not what their text says. Whoever reads outcomes uses this table."""
    table = tables.members.c
    texts = tables.texts.c
    outcomes = tables.outcomes.c
    query = select(table.list, table.place, table.subject, texts.key, texts.long).order_by(table.list, table.place)
    rows = _stream_rows(connection, query.outerjoin_from(tables.members, tables.texts, texts.seq == table.list))
    for number, some in groupby(rows, itemgetter(0)):
        of_list = list(some)
        expected = list_members(number, of_list[0].long or of_list[0].key or "")
        if [(row.place, row.subject) for row in of_list] != list(enumerate(expected)):
            yield f"the subjects of list {number} were changed"
    unknown = select(outcomes.seq).where(outcomes.subject.not_in(select(table.list))).limit(1)
    for number in connection.execute(unknown).scalars():
        yield f"nobody can tell whom outcome {number} is about: its list of subjects is missing"


def _check_newest(connection: Connection) -> Iterator[str]:
    """Yield the rows of `newest` that do not follow from the outcomes. Decisions use this table."""
    kept = select(*(tables.newest.c[name] for name in NEWEST_COLUMNS))
    follows = select_expected_newest()
    for row in connection.execute(except_(kept, follows).limit(1)):
        yield f"outcome {row.outcome} stands as the newest of its kind and is not"
    for row in connection.execute(except_(follows, kept).limit(1)):
        yield f"outcome {row.outcome} is the newest of its kind and does not stand as that"


def _stream_rows(connection: Connection, query: Select[Any]) -> Iterator[ChainRow]:
    yield from connection.execute(query, execution_options={"yield_per": ROWS_PER_FETCH})
