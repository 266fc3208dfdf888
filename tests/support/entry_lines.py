"""The lines of consecutive entries of a ledger, as people read them."""

from __future__ import annotations

from collections.abc import Iterable

from assay.decide.state.entry_messages import EntryFormatter, format_entry
from assay.model.ledger_entry import LedgerEntry


def format_entries(entries: Iterable[LedgerEntry]) -> list[str]:
    """Return one line for each entry."""
    formatter = EntryFormatter()
    return [format_entry(entry, formatter) for entry in entries]
