"""A clock that is moved by hand, and nodes that serve."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from assay.controller.context import ControllerContext
from assay.lifecycle import ledger_entries

ROOT = Path(__file__).parents[3]


class Hands:
    """The fleet's time; it stands still unless it is told."""

    def __init__(self) -> None:
        self.at = datetime(2026, 11, 21, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


def in_production(desk: ControllerContext) -> None:
    """Enrol every node of the fleet where it serves."""
    now = desk.clock.now()
    desk.ledger.append(
        *(
            ledger_entries.make_enrolled_entry(one.name, one.pool, "production", now)
            for one in desk.fleet.nodes.values()
        )
    )
