"""The ledger: append, and read back in order. Nothing is ever changed or taken out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from pathlib import Path
from threading import Lock

from sqlalchemy import Connection, Engine, Table, bindparam, func, insert, select, text

from assay.ledger import leases, outcomes, rows, tables, verify
from assay.ledger.ages import Age, ages
from assay.ledger.chain import Chain
from assay.ledger.dates import Dates
from assay.ledger.engine import PATIENCE_S, address, connect, reading, snapshot, telling, writing
from assay.ledger.exclusive import exclusively, within
from assay.ledger.leases import Lease
from assay.ledger.texts import BATCH, Texts, batches, number_of, numbers_of
from assay.ledger.times import seconds
from assay.ledger.waiting import CHANNEL, wait
from assay.model.entry import Entry
from assay.model.outcome import Outcome, Recorded, Run

__all__ = ["Lease", "Ledger", "Recorded"]


class Ledger:
    """An append-only history on SQLite or PostgreSQL. Every method may raise Trouble; what it returned from is kept.

    Usable from several threads and processes at once; an instance must not cross a fork.
    """

    def __init__(self, engine: Engine, patience_s: float = PATIENCE_S) -> None:
        self._engine, self._patience_s = engine, patience_s
        self._texts = Texts()
        self._turns: dict[str, Lock] = {}

    @classmethod
    def open(cls, where: Path | str, patience_s: float = PATIENCE_S) -> Ledger:
        """Open the ledger at a path or URL, made on first use; `patience_s` is how long to wait for a lock."""
        return cls(connect(address(where), patience_s), patience_s)

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def append(self, *entries: Entry) -> list[bool]:
        """Append in one transaction; for each entry say whether it is new (False: its id is known, nothing done)."""
        if not entries:
            return []
        with writing(self._engine) as connection:
            chain = Chain(connection, "entry")
            added = {one for some in batches(entries, BATCH) for one in _append(connection, chain, some)}
            chain.keep()
            if added and connection.dialect.name == "postgresql":
                connection.execute(text(f"NOTIFY {CHANNEL}"))
        return [_taken(added, entry.id) for entry in entries]

    def entries(self, node: str | None = None, kinds: Collection[str] = (), after: int = 0) -> list[Entry]:
        """Return entries in order: of one node, of some kinds, of numbers above `after`."""
        table = tables.entries.c
        query = select(*rows.ENTRY).where(table.seq > after).order_by(table.seq)
        if node is not None:
            query = query.where(table.node == node)
        if kinds:
            query = query.where(table.kind.in_(sorted(kinds)))
        with reading(self._engine) as connection:
            return list(map(rows.entry, connection.execute(query).all()))

    def entries_by_node(self, nodes: Collection[str], kinds: Collection[str]) -> dict[str, list[Entry]]:
        """Return the entries of some kinds of each of these nodes, in order."""
        table, found = tables.entries.c, dict[str, list[Entry]]((name, []) for name in nodes)
        query = select(*rows.ENTRY).where(table.kind.in_(sorted(kinds))).order_by(table.seq)
        with reading(self._engine) as connection:
            for some in batches(found, BATCH):
                for row in connection.execute(query.where(table.node.in_(some))):
                    found[row.node].append(rows.entry(row))
        return found

    def head(self) -> int:
        """Return the number of the newest entry, 0 where there is none. Costs some 100 µs."""
        return self._highest(tables.entries)

    def wait(self, after: int, timeout_s: float) -> int:
        """Return `head()` as soon as it is above `after`, or as it is when the time is over (real seconds)."""
        return wait(self._engine, self.head, after, timeout_s)

    def record(self, run: Run, told: Iterable[Outcome], now: datetime | None = None) -> bool:
        """Write a run and its outcomes whole, or, when the run's id is known, nothing (False).

        `now` is the fleet's time, None where the run was long ago: nothing counts as measured later than that.
        """
        with writing(self._engine) as connection:
            if _known(connection, tables.runs, [run.id]):
                return False
            chain = Chain(connection, "run")
            brought = outcomes.record(connection, told, chain.seq + 1, Dates(connection, run.at, now))
            connection.execute(insert(tables.runs), chain.add(rows.of_run(run) | brought))
            chain.keep()
            return True

    def runs(self) -> list[Run]:
        """Return every run, oldest first."""
        with reading(self._engine) as connection:
            query = select(tables.runs).order_by(tables.runs.c.seq)
            return [rows.run(row) for row in connection.execute(query).mappings()]

    def outcomes(
        self, run: str | None = None, node: str | None = None, checks: Collection[str] = (), since: str = ""
    ) -> list[Recorded]:
        """Return outcomes in the order they were written: of one run, of one node, of some checks, since a time."""
        table = tables.outcomes.c
        query = outcomes.wanted().order_by(table.seq)
        if run is not None:
            query = query.where(tables.runs.c.id == run)
        if since:
            query = query.where(table.measured_s >= seconds(since))
        with reading(self._engine) as connection:
            if node is not None:
                query = query.where(table.node == number_of(connection, node))
            if checks:
                query = query.where(table.check.in_([number_of(connection, check) for check in sorted(checks)]))
            return outcomes.found(connection, query, self._texts)

    def outcomes_head(self) -> int:
        """Return a number that grows with each recorded run: while it stays, `latest` says the same."""
        return self._highest(tables.runs)

    def latest(self, node: str | None = None, nodes: Collection[str] | None = None) -> list[Recorded]:
        """Return the newest outcome of each check × subject, by when its evidence was collected.

        Of one node, of several, or of all (None).
        """
        wanted = [node] if node is not None else nodes
        with reading(self._engine) as connection:
            if wanted is None:
                found = outcomes.found(connection, outcomes.newest(), self._texts)
            else:
                found = [one for some in batches(wanted, BATCH) for one in self._latest(connection, some)]
        return sorted(found, key=lambda one: (one.outcome.check, one.outcome.subject))

    def ages(self, nodes: Collection[str]) -> dict[str, dict[str, Age]]:
        """Return, of each of these nodes and each check, of how many subjects there is a judgement, and the oldest."""
        with reading(self._engine) as connection:
            return {
                name: age for some in batches(nodes, BATCH) for name, age in ages(connection, self._texts, some).items()
            }

    def last_pass(self, check: str, subject: str, before: str = "") -> Recorded | None:
        """Return the newest pass of a check on a subject, by when its evidence was collected.

        `before` is the id of a run: only what was recorded before it counts.
        """
        with reading(self._engine) as connection:
            numbers = number_of(connection, check), number_of(connection, subject)
            query = outcomes.last_pass_before(before, *numbers) if before else outcomes.last_pass(*numbers)
            found = outcomes.found(connection, query, self._texts)
        return found[0] if found else None

    def verify(self) -> list[str]:
        """Hold every line to the hash chains; return what does not fit, first lines first, nothing when it is whole."""
        with snapshot(self._engine) as connection:
            return list(islice(verify.problems(connection), verify.MANY))

    def ends(self) -> dict[str, tuple[int, str]]:
        """Return how the chains of entries (`entry`) and of runs (`run`) end: number and hash of the last line."""
        with reading(self._engine) as connection:
            return {row.name: (row.seq, row.hash) for row in connection.execute(select(tables.chains))}

    def hash_of(self, seq: int) -> str | None:
        """Return the hash of one entry, None where there is none of that number."""
        with reading(self._engine) as connection:
            return connection.execute(select(tables.entries.c.hash).where(tables.entries.c.seq == seq)).scalar()

    def claim(self, name: str, holder: str, for_s: float) -> bool:
        """Take or renew the lease `name` for so many seconds by the database's clock; return whether it is ours.

        False while another holder has it. Of two that claim it at once, one gets it.
        """
        with telling(self._engine), self._engine.begin() as connection:
            return leases.claim(connection, name, holder, for_s)

    def let_go(self, name: str, holder: str) -> None:
        """End a lease before its time; nothing where this holder does not have it."""
        with telling(self._engine), self._engine.begin() as connection:
            leases.let_go(connection, name, holder)

    def holders(self) -> dict[str, Lease]:
        """Return who holds which lease now, and until when by the database's clock."""
        with reading(self._engine) as connection:
            return leases.holders(connection)

    @contextmanager
    def exclusively(self, name: str, patience_s: float = 60.0) -> Iterator[None]:
        """Return a short section that one holder at a time goes through, over all processes on this ledger.

        It ends with its process, however that ends. Not to be entered twice by one thread. Raises Trouble when
        another keeps it for longer than `patience_s`.
        """
        with within(self._turns.setdefault(name, Lock()), patience_s), exclusively(self._engine, name, patience_s):
            yield

    def _latest(self, connection: Connection, nodes: Sequence[str]) -> list[Recorded]:
        return outcomes.found(connection, outcomes.newest(numbers_of(connection, nodes)), self._texts)

    def _highest(self, table: Table) -> int:
        with reading(self._engine) as connection:
            number: int = connection.execute(select(func.coalesce(func.max(table.c.seq), 0))).scalar_one()
            return number


def _append(connection: Connection, chain: Chain, entries: Sequence[Entry]) -> Collection[str]:
    """Insert many at once, in their order; return the ids that were not known. Of one id, the first entry counts."""
    known = _known(connection, tables.entries, [entry.id for entry in entries])
    new: dict[str, rows.Plain] = {}
    for entry in entries:
        if entry.id not in known and entry.id not in new:
            new[entry.id] = chain.add(rows.of_entry(entry))
    if new:
        _insert(connection, list(new.values()))
    return new.keys()


def _taken(added: set[str], one: str) -> bool:
    """Whether this is the first that is asked of the ids that were added."""
    new = one in added
    added.discard(one)
    return new


def _known(connection: Connection, table: Table, ids: Sequence[str]) -> set[str]:
    """Return those of the ids that a table has already."""
    return set(connection.execute(_AMONG[table.name], {"ids": ids}).scalars())


_AMONG = {
    table.name: select(table.c.id).where(table.c.id.in_(bindparam("ids", expanding=True)))
    for table in (tables.entries, tables.runs)
}


def _insert(connection: Connection, lines: Sequence[rows.Plain]) -> None:
    """Insert entries by one statement, in the driver's words: SQLAlchemy's take longer for each than its hash does."""
    marks = ", ".join([_MARK[connection.dialect.name]] * len(_NAMES))
    statement = f"INSERT INTO entry ({', '.join(_NAMES)}) VALUES {', '.join([f'({marks})'] * len(lines))}"  # noqa: S608
    connection.exec_driver_sql(statement, tuple(line[name] for line in lines for name in _NAMES))


_MARK = {"sqlite": "?", "postgresql": "%s"}
_NAMES = tables.entries.columns.keys()
