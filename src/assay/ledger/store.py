"""The ledger: append entries, read them in order, wait for new ones without polling. It changes and removes nothing."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any

from sqlalchemy import Connection, Engine, Table, func, insert, select, text
from sqlalchemy.exc import OperationalError

from assay.ledger import chain_verification, leases, tables
from assay.ledger.connection import (
    LOCK_TIMEOUT_S,
    give_back_space,
    name_ledger,
    open_engine,
    open_reader,
    open_reading_engine,
    open_snapshot,
    open_writer,
    parse_ledger_url,
    translate_errors,
)
from assay.ledger.errors import LedgerError, make_other_context_error
from assay.ledger.hash_chain import ChainName, HashChain, find_known_ids, insert_entries, is_in_ledger
from assay.ledger.leases import LedgerLease, hold_section
from assay.ledger.newest import outcome_queries, outcomes, pruning
from assay.ledger.newest.counts import (
    CheckAge,
    OutcomeCounts,
    count_outcomes,
    read_check_ages,
    read_check_standings,
    read_oldest_passes,
)
from assay.ledger.newest.interned_texts import BATCH_SIZE, TextCache, find_text_number, split_batches
from assay.model.ledger_entry import IN_LAB, Context, LedgerEntry
from assay.model.outcome import VERDICTS, CheckStandings, CheckVerdict, Outcome, RecordedOutcome, SuiteRun
from assay.model.timestamps import parse_epoch_seconds

POLL_INTERVAL_S = 0.05
"""Between two looks at SQLite's own number of changes, which costs some 10 µs and reads no table."""
NOTIFY_CHANNEL = "assay_ledger"


def _listen_postgresql(engine: Engine, head: Callable[[], int], after: int, until: float) -> int:
    with open_reader(engine) as connection:
        connection.execute(text(f"LISTEN {NOTIFY_CHANNEL}"))
        try:
            while (now := head()) <= after and (left := until - time.monotonic()) > 0:
                _wait_for_notify(connection, left)
            return now
        finally:
            if not connection.invalidated:
                connection.execute(text(f"UNLISTEN {NOTIFY_CHANNEL}"))


def _wait_for_notify(connection: Connection, timeout_s: float) -> None:
    """Sleep until somebody notifies. Raises OperationalError if the server is gone."""
    import psycopg

    try:
        for _ in connection.connection.driver_connection.notifies(timeout=timeout_s, stop_after=1):  # type: ignore[union-attr]
            pass
    except psycopg.Error as error:
        connection.invalidate()
        raise OperationalError("LISTEN", None, error) from error


def _poll_sqlite(engine: Engine, head: Callable[[], int], after: int, until: float) -> int:
    """Watch the database from a separate connection: its number changes only when others write."""
    with closing(sqlite3.connect(str(engine.url.database))) as database:
        seen = _data_version(database)
        while (now := head()) <= after and time.monotonic() < until:
            while _data_version(database) == seen and time.monotonic() < until:
                time.sleep(POLL_INTERVAL_S)
            seen = _data_version(database)
        return now


def _data_version(database: sqlite3.Connection) -> int:
    ((number,),) = database.execute("PRAGMA data_version")
    return int(number)


class Ledger:
    """An append-only history on SQLite or PostgreSQL. When a method returns, the ledger has stored what it wrote.

    Every method may raise AssayError. Several threads and processes may use it at once; an instance must not cross a
    fork.
    """

    def __init__(self, engine: Engine, patience_s: float = LOCK_TIMEOUT_S, context: Context | None = None) -> None:
        self._engine, self._patience_s = engine, patience_s
        self._context = self._read_context(context)
        self._texts = TextCache()
        self._turns: dict[str, Lock] = {}

    @classmethod
    def open(cls, where: Path | str, patience_s: float = LOCK_TIMEOUT_S, *, context: Context | None = None) -> Ledger:
        """Open the ledger at a path or URL, and make it on first use; `patience_s` is how long to wait for a lock.

        `context` is where its entries must have been made, None for whatever it holds. Raises LedgerError if they
        were made elsewhere: no rehearsal is ever a fact of the fleet.
        """
        return cls(open_engine(parse_ledger_url(where), patience_s), patience_s, context)

    @classmethod
    def open_for_reading(
        cls, where: Path | str, patience_s: float = LOCK_TIMEOUT_S, *, context: Context | None = None
    ) -> Ledger:
        """Open an existing ledger that is only read: on a full or read-only disk too, and while another holds it.

        Raises LedgerError where there is none, or one of another `context`.
        """
        return cls(open_reading_engine(parse_ledger_url(where), patience_s), patience_s, context)

    def _read_context(self, asked: Context | None) -> Context:
        table = tables.entries.c
        query = select(*tables.ENTRY_COLUMNS).where(is_in_ledger(table.body)).order_by(table.seq).limit(1)
        with open_reader(self._engine) as connection:
            first = connection.execute(query).first()
        if first is None:
            return asked or "fleet"
        context = tables.entry_from_row(first).context
        if asked is not None and asked != context:
            raise make_other_context_error(context, asked, name_ledger(self._engine))
        return context

    @property
    def is_shared(self) -> bool:
        """Whether processes on several machines may use it: on PostgreSQL they may."""
        return self._engine.dialect.name == "postgresql"

    @property
    def server_url(self) -> str:
        """The URL of a shared ledger's database, with its password: never print it."""
        return self._engine.url.set(drivername="postgresql").render_as_string(hide_password=False)

    @property
    def file(self) -> Path | None:
        """The file of an SQLite ledger; None for a ledger on a server."""
        return None if self.is_shared else Path(str(self._engine.url.database)).absolute()

    def close(self) -> None:
        """Close the database."""
        self._engine.dispose()

    def append(self, *entries: LedgerEntry) -> list[bool]:
        """Append in one transaction; return for each entry whether it is new. A known id (False) changes nothing.

        A lab's ledger marks each entry as made there; a fleet's refuses such entries.
        """
        if not entries:
            return []
        if self._context == "lab":
            entries = tuple(replace(entry, body={**entry.body, IN_LAB: True}) for entry in entries)
        elif made_in_lab := next((entry for entry in entries if entry.context == "lab"), None):
            name = f"the entry {made_in_lab.id} ({made_in_lab.kind})"
            problem = f"{name} was made in a lab: no ledger of a fleet takes it"
            raise LedgerError(problem, where=name_ledger(self._engine))
        with open_writer(self._engine) as connection:
            chain = HashChain(connection, "entry")
            batches = split_batches(entries, BATCH_SIZE)
            added = {entry_id for some in batches for entry_id in insert_entries(connection, chain, some)}
            chain.save()
            if added and connection.dialect.name == "postgresql":
                connection.execute(text(f"NOTIFY {NOTIFY_CHANNEL}"))
        is_new = []
        for entry in entries:
            is_new.append(entry.id in added)
            added.discard(entry.id)  # an id that is given twice is new once
        return is_new

    def entries(
        self, node: str | None = None, kinds: Collection[str] = (), after: int = 0, most: int | None = None
    ) -> list[LedgerEntry]:
        """Return entries in order: of one node, of some kinds, or with numbers above `after`; the first `most`."""
        table = tables.entries.c
        query = select(*tables.ENTRY_COLUMNS).where(table.seq > after, is_in_ledger(table.body))
        query = query.order_by(table.seq).limit(most)
        if node is not None:
            query = query.where(table.node == node)
        if kinds:
            query = query.where(table.kind.in_(sorted(kinds)))
        with open_reader(self._engine) as connection:
            return list(map(tables.entry_from_row, connection.execute(query).all()))

    def entries_by_node(self, nodes: Collection[str], kinds: Collection[str]) -> dict[str, list[LedgerEntry]]:
        """Return the entries of some kinds of each of these nodes, in order."""
        table, by_node = tables.entries.c, dict[str, list[LedgerEntry]]((name, []) for name in nodes)
        wanted = table.kind.in_(sorted(kinds)), is_in_ledger(table.body)
        query = select(*tables.ENTRY_COLUMNS).where(*wanted).order_by(table.seq)
        with open_reader(self._engine) as connection:
            for some in split_batches(by_node, BATCH_SIZE):
                for row in connection.execute(query.where(table.node.in_(some))):
                    by_node[row.node].append(tables.entry_from_row(row))
        return by_node

    def head(self) -> int:
        """Return the number of the newest entry, 0 if there is none. Costs some 100 µs."""
        return self._highest(tables.entries)

    def wait(self, after: int, timeout_s: float) -> int:
        """Return `head()` as soon as it is above `after`, or its value when the time is over (real seconds)."""
        until = time.monotonic() + timeout_s
        if (now := self.head()) > after or timeout_s <= 0:
            return now
        if self._engine.dialect.name == "postgresql":
            return _listen_postgresql(self._engine, self.head, after, until)
        return _poll_sqlite(self._engine, self.head, after, until)

    def record(self, run: SuiteRun, judged: Iterable[Outcome], now: datetime | None = None) -> bool:
        """Write a run with all its outcomes; return False, and write nothing, if the run's id is known.

        `now` is the fleet's time, None if the run was long ago: no outcome gets a date later than that.
        """
        with open_writer(self._engine) as connection:
            if find_known_ids(connection, tables.runs, [run.id]):
                return False
            chain = HashChain(connection, "run")
            dates = outcomes.OutcomeDates(connection, run.at, now)
            brought = outcomes.write_outcomes(connection, judged, chain.seq + 1, dates)
            connection.execute(insert(tables.runs), chain.add(tables.run_to_row(run) | brought))
            chain.save()
            return True

    def iter_runs(self, after: int = 0, since: str = "") -> Iterator[SuiteRun]:
        """Yield every run, oldest first: those recorded since `outcomes_head` was `after`, and begun since a time."""
        runs = tables.runs.c
        query = select(tables.runs).where(runs.seq > after, runs.at >= since).order_by(runs.seq)
        with open_reader(self._engine) as connection:
            yield from map(tables.run_from_row, connection.execute(query).mappings())

    def outcomes(
        self, run: str | None = None, node: str | None = None, checks: Collection[str] = (), since: str = ""
    ) -> list[RecordedOutcome]:
        """Return outcomes, row by row as written: of one run, of one node, of some checks, or since a time."""
        table = tables.outcomes.c
        query = outcome_queries.select_outcomes().order_by(table.seq, tables.members.c.place)
        if run is not None:
            query = query.where(outcome_queries.is_of_run(run))
        if since:
            query = query.where(table.measured_s >= parse_epoch_seconds(since))
        with open_reader(self._engine) as connection:
            if node is not None:
                query = query.where(table.node == find_text_number(connection, node))
            if checks:
                query = query.where(table.check.in_([find_text_number(connection, check) for check in sorted(checks)]))
            return outcomes.read_outcomes(connection, query, self._texts)

    def outcomes_head(self) -> int:
        """Return a number that grows with each recorded run: while it does not change, `latest` returns the same."""
        return self._highest(tables.runs)

    def find_judged_nodes(self, after: int) -> set[str]:
        """Return the nodes with outcomes in runs that were recorded since `outcomes_head` was `after`."""
        with open_reader(self._engine) as connection:
            return outcomes.read_judged_nodes(connection, after, self._texts)

    def latest(self, node: str | None = None, nodes: Collection[str] | None = None) -> list[RecordedOutcome]:
        """Return the newest outcome of each check × subject, by the time of its evidence.

        Of one node, of several, or of all (None).
        """
        wanted = [node] if node is not None else nodes
        with open_reader(self._engine) as connection:
            newest = outcomes.read_newest(connection, wanted, self._texts)
        return sorted(newest, key=lambda recorded: (recorded.outcome.check, recorded.outcome.subject))

    def newest_rows(self) -> Iterator[Sequence[Any]]:
        """Yield the newest outcome of each check × subject as numbers, see `select_newest_rows`."""
        with open_reader(self._engine) as connection:
            yield from connection.execute(outcome_queries.select_newest_rows().execution_options(yield_per=10_000))

    def read_texts(self, numbers: Collection[int]) -> Mapping[int, str]:
        """Return the texts of these numbers."""
        with open_reader(self._engine) as connection:
            self._texts.load(connection, numbers)
        return {number: self._texts[number] for number in numbers}

    def run_marks(self) -> list[Sequence[Any]]:
        """Return number, id, time, commit of the specs and whether files differed from it, of each run in order."""
        runs = tables.runs.c
        query = select(runs.seq, runs.id, runs.at, runs.spec_commit, runs.dirty).order_by(runs.seq)
        with open_reader(self._engine) as connection:
            return [*connection.execute(query).all()]

    def ages(self, nodes: Collection[str]) -> dict[str, dict[str, CheckAge]]:
        """Return for each of these nodes and checks how many subjects have a verdict, and the oldest one."""
        with open_reader(self._engine) as connection:
            return {
                name: age
                for some in split_batches(nodes, BATCH_SIZE)
                for name, age in read_check_ages(connection, self._texts, some).items()
            }

    def count_outcomes(self, after: int) -> OutcomeCounts:
        """Return the counts of the runs that were recorded since `outcomes_head` was `after`."""
        with open_reader(self._engine) as connection:
            return count_outcomes(connection, self._texts, after)

    def oldest_passes(self, checks: Collection[str], nodes: Collection[str] | None = None) -> dict[str, float]:
        """Return when the oldest of the newest passes of these checks was, by node; see `read_oldest_passes`."""
        with open_reader(self._engine) as connection:
            return read_oldest_passes(connection, self._texts, checks, nodes)

    def standings(self, checks: Collection[str], nodes: Collection[str] | None = None) -> CheckStandings:
        """Return how these checks stand on nodes: their newest outcomes, passes counted. Others may be among them."""
        with open_reader(self._engine) as connection:
            return read_check_standings(connection, self._texts, checks, nodes)

    def last_outcome(
        self, check: str, subject: str, verdict: CheckVerdict = "pass", before: str = ""
    ) -> RecordedOutcome | None:
        """Return the newest pass (or other verdict) of a check on a subject, by the time of its evidence.

        `before` is the id of a run: only outcomes recorded before it count.
        """
        with open_reader(self._engine) as connection:
            kind = find_text_number(connection, check), find_text_number(connection, subject), VERDICTS.index(verdict)
            query = (
                outcome_queries.select_last_outcome_before(before, *kind)
                if before
                else outcome_queries.select_last_outcome(*kind)
            )
            newest = outcomes.read_outcomes(connection, query, self._texts)
        return newest[0] if newest else None

    def newest_passes(self, check: str) -> list[RecordedOutcome]:
        """Return the newest pass of a check on each subject, in no order."""
        with open_reader(self._engine) as connection:
            query = outcome_queries.select_newest_passes(find_text_number(connection, check))
            return outcomes.read_outcomes(connection, query, self._texts)

    def verify(self) -> list[str]:
        """Verify every line by the hash chains; return the problems, first lines first. A whole ledger has none."""
        with open_snapshot(self._engine) as connection:
            return list(islice(chain_verification.find_chain_problems(connection), chain_verification.MAX_PROBLEMS))

    def count_prunable(self, before: datetime) -> int:
        """Return how many outcomes `prune_outcomes` would delete."""
        with open_reader(self._engine) as connection:
            return pruning.count_prunable(connection, before)

    def prune_outcomes(self, before: datetime, who: str, now: datetime) -> int:
        """Delete old outcomes of runs before a time, and return how many; see `ledger/newest/pruning.py`."""
        with open_writer(self._engine) as connection:
            deleted = pruning.prune_outcomes(connection, before, who, now)
        if deleted:
            give_back_space(self._engine)
        return deleted

    def iter_named_evidence(self, before: datetime | None) -> Iterator[str]:
        """Yield the digests that entries and outcomes name, but for outcomes that `prune_outcomes` would delete."""
        with open_snapshot(self._engine) as connection:
            yield from pruning.iter_named_evidence(connection, before)

    def chain_ends(self) -> dict[str, tuple[int, str]]:
        """Return the ends of the chains of entries (`entry`) and of runs (`run`): number and hash of the last line."""
        with open_reader(self._engine) as connection:
            return {row.name: (row.seq, row.hash) for row in connection.execute(select(tables.chains))}

    def hash_of(self, seq: int, chain: ChainName = "entry") -> str | None:
        """Return the hash of one line of a chain, None where there is none of that number."""
        table = {"entry": tables.entries, "run": tables.runs}[chain].c
        with open_reader(self._engine) as connection:
            return connection.execute(select(table.hash).where(table.seq == seq)).scalar()

    def claim_lease(self, name: str, holder: str, for_s: float) -> bool:
        """Take or renew a lease for so many seconds by the database's clock; return whether it is ours."""
        with translate_errors(self._engine), self._engine.begin() as connection:
            return leases.claim_lease(connection, name, holder, for_s)

    def release(self, name: str, holder: str) -> None:
        """End a lease before its time; does nothing if this holder does not have it."""
        with translate_errors(self._engine), self._engine.begin() as connection:
            leases.release_lease(connection, name, holder)

    def leases(self) -> dict[str, LedgerLease]:
        """Return the leases held now: by whom, and until when by the database's clock."""
        with open_reader(self._engine) as connection:
            return leases.list_leases(connection)

    @contextmanager
    def exclusive_section(self, name: str, patience_s: float = 60.0) -> Iterator[None]:
        """Return a section for short work: only one holder at a time is in it, across all processes on this ledger.

        It ends with its process, however that ends. One thread must not enter it twice. Raises AssayError if another
        holder keeps it for longer than `patience_s`.
        """
        with hold_section(self._engine, name, self._turns.setdefault(name, Lock()), patience_s):
            yield

    def _highest(self, table: Table) -> int:
        with open_reader(self._engine) as connection:
            number: int = connection.execute(select(func.coalesce(func.max(table.c.seq), 0))).scalar_one()
            return number
