"""Seals as entries of another ledger, whose own hash chain then covers them."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from assay.ledger.seals.anchor import make_no_seal_error
from assay.ledger.seals.seal import StoredSeal, parse_stored_seal
from assay.ledger.store import Ledger
from assay.model.entries.operator_entries import OtherLedgerSealedEntry
from assay.model.ledger_entry import derive_id


@dataclass(frozen=True, slots=True)
class OtherLedgerAnchor:
    """Another ledger: an SQLite file, or the URL of a database."""

    name: str
    location: Path | str
    register: Path

    def read(self) -> list[StoredSeal]:
        """Return the seals that the other ledger holds. Raises AssayError where it holds none or cannot be read."""
        if isinstance(self.location, Path) and not self.location.exists():
            raise make_no_seal_error(self.name, "this ledger is missing", self.register)
        with closing(Ledger.open_for_reading(self.location)) as ledger:
            entries = ledger.entries(kinds=[OtherLedgerSealedEntry.kind])
        if not entries:
            raise make_no_seal_error(self.name, "this ledger holds no seal", self.register)
        return [parse_stored_seal(entry.body) for entry in entries]

    def prove(self, seal: StoredSeal) -> StoredSeal:
        """Return the seal: the other ledger's own hash chain is the proof."""
        return seal

    def store(self, seal: StoredSeal) -> StoredSeal:
        """Append an entry; a ledger that does not exist yet is made."""
        content = OtherLedgerSealedEntry(str(seal.seal), seal.at, seal.who)
        with closing(Ledger.open(self.location)) as ledger:
            ledger.append(content.make_entry(derive_id("sealed", *seal.to_body().values()), seal.at))
        return seal
