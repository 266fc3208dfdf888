"""A fleet of a test whose ledger was written by hand: its nodes were just read, so that they count as known."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from assay.ledger.store import Ledger
from assay.observe.last_seen import LastSeen


def note_readings(root: Path, at: datetime | None = None) -> None:
    """Record that the probe of each node of the ledger below `root` has answered, now or at a time."""
    ledger = Ledger.open(root / ".assay" / "ledger.sqlite")
    names = {entry.node for entry in ledger.entries() if entry.node}
    ledger.close()
    LastSeen(root / ".assay" / "heard.sqlite").record_polls(
        {(name, "probe"): True for name in names}, at or datetime.now(UTC)
    )
