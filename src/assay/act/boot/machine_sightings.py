"""Records machines that were seen before they are nodes: an entry only where one says something new of itself."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from assay.act.boot.matching import MachineRegister, Sighting
from assay.ledger.ledger_reader import read_projection
from assay.ledger.store import Ledger
from assay.model.entries.boot import MachineSeenEntry
from assay.model.facts import to_stored
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.projection import Projection
from assay.model.specs.machines import SeenMachine
from assay.model.timestamps import format_time, parse_time

LISTED_FOR = timedelta(days=30)
"""A machine that was not seen for so long is no longer listed: its board may have gone elsewhere."""
REPEATED_AFTER = timedelta(days=7)
"""A machine that says nothing new is recorded again after so long, so that it stays in the list."""


@dataclass(slots=True)
class SeenMachines:
    """The machines that were ever seen, and the id of the last entry about one.

    A machine that comes again after `LISTED_FOR` begins anew.
    """

    register: MachineRegister = field(default_factory=MachineRegister)
    newest: str = ""

    def copy(self) -> SeenMachines:
        """Return one that changes for itself."""
        return SeenMachines(self.register.copy(), self.newest)

    def add(self, entry: LedgerEntry) -> SeenMachines:
        """Add the next entry, and return this object."""
        seen = MachineSeenEntry.read(entry)
        known = self.register.find(seen.machine)
        if known and parse_time(entry.at) - parse_time(known.at) > LISTED_FOR:
            self.register.forget(seen.machine)
        self.register.add(Sighting(seen.machine, entry.at, seen.source))
        self.newest = entry.id
        return self


SEEN_MACHINES = Projection((MachineSeenEntry.kind,), SeenMachines, SeenMachines.add, SeenMachines.copy)


def record_sightings(ledger: Ledger, seen: Iterable[SeenMachine], source: str, now: datetime) -> list[SeenMachine]:
    """Append an entry for each machine that says what the ledger does not have of it, and return these machines."""
    known = read_projection(ledger, SEEN_MACHINES)
    entries, batch, last = list[LedgerEntry](), MachineRegister(), known.newest
    for machine in seen:
        earlier = known.register.find(machine)
        is_old = earlier is not None and now - parse_time(earlier.at) > REPEATED_AFTER
        if (is_old or known.register.says_news(machine)) and batch.says_news(machine):
            batch.add(Sighting(machine))
            # of two that record the same at once, one wins
            last = derive_id(MachineSeenEntry.kind, last, json.dumps(to_stored(machine), sort_keys=True))
            entries.append(MachineSeenEntry(machine, source).make_entry(last, format_time(now)))
    ledger.append(*entries)
    return [MachineSeenEntry.read(entry).machine for entry in entries]


def read_sightings(ledger: Ledger, now: datetime) -> list[Sighting]:
    """Return the machines that were seen lately, each as it was seen last."""
    sightings = read_projection(ledger, SEEN_MACHINES).register.sightings
    return [sighting for sighting in sightings if now - parse_time(sighting.at) <= LISTED_FOR]
