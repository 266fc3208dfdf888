"""Records machines that were seen before they are nodes: an entry only where one says something new of itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from threading import Lock

from assay.act.boot.matching import MachineRegister, Sighting
from assay.ledger.store import Ledger
from assay.model.entries.boot import MachineSeenEntry
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.specs.machines import SeenMachine
from assay.model.timestamps import format_time, parse_time

LISTED_FOR = timedelta(days=30)
"""A machine that was not seen for so long is no longer listed: its board may have gone elsewhere."""
REPEATED_AFTER = timedelta(days=7)
"""A machine that says nothing new is recorded again after so long, so that it stays in the list."""


class MachineSightings:
    """The machines that were seen lately, from entries that are read once each. Safe for threads."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._lock = ledger, Lock()
        self._register, self._newest = MachineRegister(), (0, "")

    def read(self, now: datetime) -> list[Sighting]:
        """Return the machines, each as it was seen last."""
        with self._lock:
            self._refresh(now)
            self._register.keep(lambda one: now - parse_time(one.at) <= LISTED_FOR)
            return self._register.sightings

    def record(self, seen: Iterable[SeenMachine], source: str, now: datetime) -> list[SeenMachine]:
        """Append an entry for each machine that says what the ledger does not have of it, and return these machines."""
        with self._lock:
            self._refresh(now)
            entries, batch, last = list[LedgerEntry](), MachineRegister(), self._newest[1]
            for machine in filter(self._is_due(now), seen):
                if batch.says_news(machine):
                    batch.add(Sighting(machine))
                    # of two that record the same at once, one wins
                    last = derive_id(MachineSeenEntry.kind, last, json.dumps(machine.as_json(), sort_keys=True))
                    entries.append(MachineSeenEntry(machine, source).make_entry(last, format_time(now)))
            self._ledger.append(*entries)
            return [MachineSeenEntry.read(entry).machine for entry in entries]

    def _is_due(self, now: datetime) -> Callable[[SeenMachine], bool]:
        def is_due(machine: SeenMachine) -> bool:
            known = self._register.find(machine)
            is_old = known is not None and now - parse_time(known.at) > REPEATED_AFTER
            return is_old or self._register.says_news(machine)

        return is_due

    def _refresh(self, now: datetime) -> None:
        for entry in self._ledger.entries(kinds=[MachineSeenEntry.kind], after=self._newest[0]):
            self._newest = (entry.seq, entry.id)
            if now - parse_time(entry.at) <= LISTED_FOR:
                seen = MachineSeenEntry.read(entry)
                self._register.add(Sighting(seen.machine, entry.at, seen.source))


def record_sightings(ledger: Ledger, seen: Iterable[SeenMachine], source: str, now: datetime) -> list[SeenMachine]:
    """Record machines as `MachineSightings.record` does, once."""
    return MachineSightings(ledger).record(seen, source, now)


def read_sightings(ledger: Ledger, now: datetime) -> list[Sighting]:
    """Return the machines that were seen lately, each as it was seen last."""
    return MachineSightings(ledger).read(now)
