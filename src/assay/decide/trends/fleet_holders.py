"""Who held which place of the fleet's nodes, as the table `holders`: by the ledger, and a file that keeps it.

The file is a cache. With it, only nodes with new entries are followed, from their first entry on. It counts while the
ledger has the entry up to which it was made, for moments after all entries of then.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from assay.decide.state.part_holders import HOLDER_ENTRY_KINDS, PartHolder, list_part_holders
from assay.ledger.newest.interned_texts import split_batches
from assay.ledger.store import Ledger
from assay.model.entries.asset_entries import SetupSeenEntry
from assay.model.ledger_entry import LedgerEntry
from assay.model.timestamps import format_time, parse_epoch_seconds_cached, parse_time

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

HOLDERS_FILE = Path("trends") / "holders.parquet"
"""Where it is in the reports folder."""
FORM = "1"
"""Counts up when the meaning of a column changes."""
NODES_AT_ONCE, ROWS_AT_ONCE = 200, 10_000
_HOLDERS = """
CREATE TABLE holders (node VARCHAR, subject VARCHAR, serial VARCHAR, sku VARCHAR, firmware VARCHAR, rack VARCHAR,
  position VARCHAR, since_s DOUBLE, until_s DOUBLE, pdu VARCHAR, switch VARCHAR, batch VARCHAR, driver VARCHAR,
  kind VARCHAR)
"""
_KNOWN = "SELECT decode(key), decode(value) FROM parquet_kv_metadata($file)"
_TAKE = "INSERT INTO holders FROM read_parquet($file)"
_DROP = "DELETE FROM holders WHERE list_contains($nodes, node)"
_WRITE = """
COPY holders TO '{file}' (FORMAT parquet, KV_METADATA {{form: '{form}', head: '{head}', hash: '{hash}', 'at': '{at}'}})
"""


class LedgerPosition(NamedTuple):
    """The last entry that a file counts: its number and hash. `at`: when the newest of them was made (ISO 8601 UTC)."""

    head: int
    hash: str
    at: str


def fill_holders(database: DuckDBPyConnection, ledger: Ledger, as_of: datetime, kept: Path | None) -> None:
    """Make the table `holders` by the entries up to a moment. `kept`: the file to use, and to write anew if need be."""
    database.execute(_HOLDERS)
    head = ledger.head()
    known = _take_kept(database, ledger, kept, as_of) if kept else None
    nodes = _list_nodes(ledger, known.head if known else 0)
    if known:
        database.execute(_DROP, {"nodes": nodes})
    latest = known.at if known else ""
    for names in split_batches(nodes, NODES_AT_ONCE):
        rows: list[tuple[object, ...]] = []
        for node, entries in ledger.entries_by_node(names, HOLDER_ENTRY_KINDS).items():
            latest = max([latest, *(format_time(entry.at) for entry in entries)])
            rows += map(_make_row, list_part_holders(node, _leave_out_later(entries, as_of)))
        insert_rows(database, "holders", rows)
    if kept and nodes and latest <= format_time(as_of):
        _write(database, kept, LedgerPosition(head, ledger.hash_of(head) or "", latest))


def _list_nodes(ledger: Ledger, after: int) -> list[str]:
    """Return the nodes whose holders may be others after an entry; after none: all that have a place."""
    kinds = HOLDER_ENTRY_KINDS if after else ("node.enrolled", SetupSeenEntry.kind)
    return sorted({entry.node for entry in ledger.entries(kinds=kinds, after=after) if entry.node})


def _leave_out_later(entries: Iterable[LedgerEntry], as_of: datetime) -> list[LedgerEntry]:
    return [entry for entry in entries if parse_time(entry.at) <= as_of]


def _take_kept(database: DuckDBPyConnection, ledger: Ledger, kept: Path, as_of: datetime) -> LedgerPosition | None:
    """Fill the table from the file. Returns None, and takes nothing, if it is damaged, newer, or of another ledger."""
    import duckdb

    try:
        told = dict(database.execute(_KNOWN, {"file": str(kept)}).fetchall())
        up_to = LedgerPosition(int(told["head"]), told["hash"], told["at"])
        is_of_ledger = ledger.hash_of(up_to.head) == up_to.hash
        if told["form"] != FORM or not is_of_ledger or up_to.at > format_time(as_of):
            return None
        database.execute(_TAKE, {"file": str(kept)})
    except (duckdb.Error, KeyError, ValueError):
        return None
    return up_to


def _write(database: DuckDBPyConnection, kept: Path, up_to: LedgerPosition) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    scratch = kept.with_name(f".{kept.name}.{os.getpid()}")
    try:
        quoted = str(scratch).replace("'", "''")
        database.execute(_WRITE.format(file=quoted, form=FORM, **up_to._asdict()))
        scratch.replace(kept)
    finally:
        scratch.unlink(missing_ok=True)


def insert_rows(database: DuckDBPyConnection, table: str, rows: Iterable[tuple[object, ...]]) -> None:
    """Insert rows into a table, many at a time."""
    appender = database.appender(table)
    for some in split_batches(list(rows), ROWS_AT_ONCE):
        appender.append_rows(some)
    appender.flush()


def _make_row(one: PartHolder) -> tuple[object, ...]:
    until = parse_epoch_seconds_cached(one.until) if one.until else None
    since = parse_epoch_seconds_cached(one.since)
    traits = (one.serial, one.sku, one.firmware, one.rack, one.position)
    return (one.node, one.place, *traits, since, until, "", "", one.batch, one.driver, one.kind)
