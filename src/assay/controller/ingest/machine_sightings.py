"""Records machines that were seen before they are nodes: an entry only where one says something new of itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from assay.ledger.store import Ledger
from assay.model.entries.machine_entries import MachineSeenEntry
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.provisioning.seen_machine import SeenMachine
from assay.model.timestamps import format_time, parse_time
from assay.provisioning.discovery.sightings import MachineRegister, Sighting

LISTED_FOR = timedelta(days=30)
"""A machine that was not seen for so long is no longer listed: its board may have gone elsewhere."""
REPEATED_AFTER = timedelta(days=7)
"""A machine that says nothing new is recorded again after so long, so that it stays in the list."""


def record_sightings(ledger: Ledger, seen: Iterable[SeenMachine], source: str, now: datetime) -> list[SeenMachine]:
    """Append an entry for each machine that says what the ledger does not have of it, and return these machines."""
    entries = ledger.entries(kinds=[MachineSeenEntry.kind])
    register = MachineRegister(_read_recent(entries, now, REPEATED_AFTER))
    new = [machine for machine in seen if register.add(Sighting(machine))]
    last = entries[-1].id if entries else ""
    for machine in new:  # of two that record the same at once, one wins
        last = derive_id(MachineSeenEntry.kind, last, json.dumps(machine.as_json(), sort_keys=True))
        ledger.append(MachineSeenEntry(machine, source).make_entry(last, format_time(now)))
    return new


def read_sightings(ledger: Ledger, now: datetime) -> list[Sighting]:
    """Return the machines that were seen lately, each as it was seen last."""
    return MachineRegister(_read_recent(ledger.entries(kinds=[MachineSeenEntry.kind]), now, LISTED_FOR)).sightings


def _read_recent(entries: Iterable[LedgerEntry], now: datetime, within: timedelta) -> Iterator[Sighting]:
    for entry in entries:
        if now - parse_time(entry.at) <= within:
            seen = MachineSeenEntry.read(entry)
            yield Sighting(seen.machine, entry.at, seen.source)
