"""Reads out of the ledger what a backtest needs, and no more of it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from pathlib import Path

from assay.ledger.where import is_server, told
from assay.lifecycle.when import written
from assay.model.entry import Entry
from assay.model.outcome import Recorded
from assay.trends.backtest import DAYS


def entries(where: Path | str) -> list[Entry]:
    """Return every entry, in order; none where there is no ledger."""
    return told(where)


def outcomes(where: Path | str, checks: Collection[str], now: datetime) -> list[Recorded]:
    """Return what these checks said in the last days; nothing is made where there is no ledger."""
    if not checks or not (is_server(where) or Path(where).exists()):
        return []
    from assay.ledger.store import Ledger

    ledger = Ledger.open(where)
    try:
        return ledger.outcomes(checks=checks, since=written(now - timedelta(days=DAYS)))
    finally:
        ledger.close()
