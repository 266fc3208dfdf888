"""Where an open ledger is, for what keeps its own data beside it."""

from __future__ import annotations

from pathlib import Path

from assay.ledger.store import Ledger


def is_shared(ledger: Ledger) -> bool:
    """Whether processes on several machines may work on it."""
    return ledger._engine.dialect.name == "postgresql"


def server_of(ledger: Ledger) -> str:
    """Return the URL of a shared ledger's database, with its password: hand it on, never show it."""
    return ledger._engine.url.set(drivername="postgresql").render_as_string(hide_password=False)


def file_of(ledger: Ledger) -> Path | None:
    """Return the file that a ledger is, None of one on a server."""
    return None if is_shared(ledger) else Path(str(ledger._engine.url.database)).absolute()
