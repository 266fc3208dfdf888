"""A small fleet with ticket routes, whose tickets a test opens, closes and delivers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from assay.act.loop.context import ControllerContext
from assay.act.tickets.ticket_diff import TICKET_STATUSES, diff_tickets
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.fleet import Fleet
from assay.model.ledger_entry import derive_id
from assay.model.ticket import Ticket, TicketPlace
from assay.observe.evidence_store import EvidenceStore
from assay.tell.messages.delivery import deliver_tickets
from assay.tell.messages.routes import UndeliveredTicket

ENDS = (
    TicketPlace("n1", "lab", "r1", 1, "mlx5_0", "r1-n1-p1"),
    TicketPlace("leaf-1", "lab", "r9", 40, "7", "r9-l1-p7"),
)


def ticket(key: str = "fabric/compute/missing/1", seen: str = "no link") -> Ticket:
    told = {"expected": "n1/mlx5_0 – leaf-1/7 at 4xNDR", "cause": "a loose plug", "steps": "reseat it\nscan again"}
    return Ticket(
        derive_id("ticket", key), key, f"No link: {key}", "n1", ENDS, seen=seen, verify="fabric scan compute", **told
    )


@dataclass
class Clock:
    at: datetime = datetime(2026, 11, 21, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


@dataclass
class Room:
    """A small fleet with routes, whose tickets a test opens and closes."""

    root: Path
    clock: Clock = field(default_factory=Clock)
    said: list[str] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    in_lab: bool = False

    def route(self, name: str, **where: Any) -> None:
        spec = {"kind": "TicketRoute", "name": name, **where}
        (self.root / "specs" / f"route-{name}.yaml").write_text(yaml.safe_dump(spec))

    @property
    def desk(self) -> ControllerContext:
        home = self.root / ".assay"
        home.mkdir(exist_ok=True)
        ledger, evidence = Ledger.open(home / "ledger.sqlite"), EvidenceStore(home / "evidence")
        declared = tuple(sorted((file, file.read_text()) for file in self.root.glob("*/*.y*ml")))
        fleet = replace(_load_unchanged(self.root, declared), is_lab=self.in_lab)
        return ControllerContext(
            fleet, ledger, evidence, self.clock, home, self.root / "reports", progress=self.said.append
        )

    def wants(self, *tickets: Ticket) -> None:
        """Have exactly these open: whatever else is open is proved fixed."""
        self.clock.sleep(60)
        desk = self.desk
        known = TICKET_STATUSES.fold(desk.ledger.entries()).by_key
        desk.ledger.append(*diff_tickets(known, tickets, lambda *_: "scan 7", desk.now, timedelta(days=30)))

    def deliver(self, *, immediately: bool = False) -> list[UndeliveredTicket]:
        return deliver_tickets(self.desk, immediately=immediately, pause=self.pauses.append)

    def delivered(self) -> list[dict[str, Any]]:
        return [entry.body for entry in self.desk.ledger.entries(kinds=["ticket.delivered"])]


@lru_cache(maxsize=1)
def _load_unchanged(root: Path, _: tuple[tuple[Path, str], ...]) -> Fleet:
    return load_fleet(root)
