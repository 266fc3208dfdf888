"""Which old entries may leave the ledger for an archive: those on which nothing rests any more.

States, tickets, rollouts, parts and coverage follow from the other kinds of entries, which always stay.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, select

from assay.ledger import tables
from assay.ledger.copies.archived_bodies import is_in_ledger
from assay.model.entries.fault_entries import ObservationFailedEntry
from assay.model.entries.schedule_entries import (
    NodeUndrainedEntry,
    ScheduleRanEntry,
    ScheduleStartedEntry,
    VerificationMissedEntry,
)
from assay.model.timestamps import parse_time

SLOT_KINDS = (ScheduleStartedEntry.kind, ScheduleRanEntry.kind)
ARCHIVABLE_KINDS = (ObservationFailedEntry.kind, NodeUndrainedEntry.kind, VerificationMissedEntry.kind, *SLOT_KINDS)
"""Kinds that are read to tell history; of slots also to find the next one, by the newest slot of each schedule."""


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
