"""Reads out of the ledger what a backtest needs, and no more of it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from pathlib import Path

from assay.ledger.glance import glance
from assay.lifecycle.when import written
from assay.model.entry import Entry
from assay.model.outcome import Recorded
from assay.trends.backtest import DAYS


def entries(file: Path) -> list[Entry]:
    """Return every entry, in order; none where there is no ledger."""
    return glance(file)


def outcomes(file: Path, checks: Collection[str], now: datetime) -> list[Recorded]:
    """Return what these checks said in the last days; nothing is made where there is no ledger."""
    if not checks or not file.exists():
        return []
    from assay.ledger.store import Ledger

    ledger = Ledger.open(file)
    try:
        return ledger.outcomes(checks=checks, since=written(now - timedelta(days=DAYS)))
    finally:
        ledger.close()
