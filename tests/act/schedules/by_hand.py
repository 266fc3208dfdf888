"""A clock that is moved by hand, and nodes that serve."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from assay.act.loop.context import ControllerContext
from assay.act.schedules.due_slots import SLOT_BEGUN, SlotTask
from assay.decide.state import decision_and_fault_entries
from assay.model.ledger_entry import LedgerEntry


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
            decision_and_fault_entries.make_enrolled_entry(one.name, one.pool, "production", now)
            for one in desk.fleet.nodes.values()
        )
    )


def begun_slot(task: SlotTask, ident: str, at: str) -> LedgerEntry:
    """Return the entry of a slot that somebody began."""
    body = {"schedule": task.line.name, "part": task.line.target, "does": task.job, "attempt": task.attempt}
    return LedgerEntry(ident, at, SLOT_BEGUN, body=body | {"slot": task.slot.isoformat()})
