"""Where a fleet's ledger is, and what it tells, wherever that is. Loads SQLAlchemy for a server only."""

from __future__ import annotations

import os
from pathlib import Path

from assay.ledger.glance import glance
from assay.model.entry import Entry

ASKED = "ASSAY_LEDGER"
"""The environment variable that says where: a path, or a `postgresql://` URL."""


def ledger_of(home: Path) -> Path | str:
    """Return where the ledger of the fleet is that keeps its data in `home` (`.assay/`)."""
    asked = os.environ.get(ASKED, "")
    return asked if is_server(asked) else Path(asked or home / "ledger.sqlite").absolute()


def asked_or_there(home: Path) -> str:
    """Return where the ledger is, for those who only read it and go without: "" where there is no file of it yet."""
    where = ledger_of(home)
    return str(where) if is_server(where) or Path(where).exists() else ""


def is_server(where: Path | str) -> bool:
    """Whether this is a URL."""
    return "://" in str(where)


def told(where: Path | str) -> list[Entry]:
    """Return every entry, in order. No file is made where there is none. Raises Trouble."""
    if not is_server(where):
        return glance(Path(where))
    from assay.ledger.store import Ledger

    ledger = Ledger.open(where)
    try:
        return ledger.entries()
    finally:
        ledger.close()
