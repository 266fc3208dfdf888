"""What the ledger knows of a wipe: which drive was told to erase itself how, and which methods did not help."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from assay.model.entries.entry_content import EntryContent
from assay.model.entries.wipe_entries import WipeMissedEntry, WipeOrderedEntry, WipeProvedEntry
from assay.model.ledger_entry import LedgerEntry, derive_id

WIPE_KINDS = (WipeOrderedEntry.kind, WipeProvedEntry.kind, WipeMissedEntry.kind)


@dataclass(slots=True)
class DriveRecord:
    """What one effect did to one drive: its newest order with its time, and why earlier methods did not help."""

    order: WipeOrderedEntry | None = None
    ordered_at: str = ""
    missed: dict[str, str] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """Whether the newest order may still come about."""
        return self.order is not None and self.order.method not in self.missed


def fold_wipe(entries: Iterable[LedgerEntry], effect: str) -> dict[str, DriveRecord]:
    """Return what an effect did, by the serial number of the drive, from entries of any kinds in order."""
    records: dict[str, DriveRecord] = {}
    for entry in entries:
        if entry.kind == WipeOrderedEntry.kind:
            order = WipeOrderedEntry.read(entry)
            if order.effect == effect:
                record = records.setdefault(order.serial, DriveRecord())
                record.order, record.ordered_at = order, entry.at
        elif entry.kind == WipeMissedEntry.kind:
            missed = WipeMissedEntry.read(entry)
            if missed.effect == effect:
                records.setdefault(missed.serial, DriveRecord()).missed[missed.method] = missed.reason
    return records


def make_wipe_entry(content: WipeOrderedEntry | WipeProvedEntry | WipeMissedEntry, at: str, node: str) -> LedgerEntry:
    """Return the entry: one of a kind for each effect, drive and method."""
    base: EntryContent = content
    return base.make_entry(derive_id(content.kind, content.effect, content.serial, content.method), at, node)
