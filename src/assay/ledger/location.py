"""Where a fleet's ledger is, and what it tells, wherever that is. Loads SQLAlchemy for a server only."""

from __future__ import annotations

import os
from pathlib import Path

from assay.ledger.entry_reader import read_sqlite_entries
from assay.ledger.errors import LEDGER_VARIABLE
from assay.model.ledger_entry import LedgerEntry


def locate_ledger(home: Path) -> Path | str:
    """Return where the ledger of the fleet is that keeps its data in `home` (`.assay/`)."""
    asked = os.environ.get(LEDGER_VARIABLE, "")
    return asked if is_server_url(asked) else Path(asked or home / "ledger.sqlite").absolute()


def locate_existing_ledger(home: Path) -> str:
    """Return where the ledger is, for those who only read it and go without: "" where there is no file of it yet."""
    where = locate_ledger(home)
    return str(where) if is_server_url(where) or Path(where).exists() else ""


def is_server_url(where: Path | str) -> bool:
    """Whether this is a URL."""
    return "://" in str(where)


def read_all_entries(where: Path | str) -> list[LedgerEntry]:
    """Return every entry, in order. No file is made where there is none. Raises AssayError."""
    if not is_server_url(where):
        return read_sqlite_entries(Path(where))
    from assay.ledger.store import Ledger

    ledger = Ledger.open(where)
    try:
        return ledger.entries()
    finally:
        ledger.close()
