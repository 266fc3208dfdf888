"""Takes the tickets to their sinks. The ledger says what each sink has; a sink that fails stops nothing else.

A sink gets a ticket while it is open, and from then on every change of it. What a delivery that was killed left behind
is found again by the sink, so that a ticket is there once. How long a failing sink is left alone stands in
`.assay/delivery.json`, which may be deleted at any time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from assay.ledger.leases_and_locks import current_process
from assay.ledger.store import Ledger, is_shared
from assay.model.clock import Clock
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.secret_redaction import redact
from assay.model.specs.ticket_routes_and_checklists import TicketRoute
from assay.model.ticket import TicketRecord
from assay.tickets.delivery_backoff import DeliveryBackoff
from assay.tickets.sink_protocol import SinkUnavailable, TicketRefusal, TicketSink
from assay.tickets.ticket_lifecycle import TICKET_KINDS, list_tickets
from assay.tickets.ticket_routing import derive_destination_id, list_ticket_routes, open_sink

TICKET_DELIVERED = "ticket.delivered"
DELIVERY_LEASE = "tickets"
"""The lease of the controller that sees to tickets, where several share a ledger."""
DELIVERY_LEASE_S = 120.0
MAX_ATTEMPTS = 3
MAX_WAIT_S = 3.0
"""How long a pass waits for a sink that asks for patience; what asks for more is left to a later pass."""
SINK_BUDGET_S = 60.0
"""How long a pass works for one sink."""


@dataclass(frozen=True, slots=True)
class UndeliveredTicket:
    """What a sink did not take, why, and when it is tried again. `ticket` is "" where it took nothing at all."""

    route: str
    ticket: str
    reason: str
    retry_at: str = ""


@dataclass(frozen=True, slots=True)
class DeliveredTicket:
    """What a sink has of a ticket, and how it calls it."""

    version: str
    external: str


class DeliveryContext(Protocol):
    """What delivering needs of whoever asks for it; `home` is `.assay/`, `now` the fleet's time as ISO 8601."""

    @property
    def fleet(self) -> Fleet: ...  # noqa: D102
    @property
    def ledger(self) -> Ledger: ...  # noqa: D102
    @property
    def clock(self) -> Clock: ...  # noqa: D102
    @property
    def home(self) -> Path: ...  # noqa: D102
    @property
    def now(self) -> str: ...  # noqa: D102
    @property
    def progress(self) -> Callable[[str], None]: ...  # noqa: D102


class _RouteDelivery:
    """The delivery to one route."""

    def __init__(
        self, desk: DeliveryContext, route: TicketRoute, postponed: DeliveryBackoff, pause: Callable[[float], None]
    ) -> None:
        self.desk, self.route, self.postponed, self.pause = desk, route, postponed, pause
        self.destination = derive_destination_id(route)

    def deliver_changes(
        self, tickets: Iterable[TicketRecord], got: Mapping[str, DeliveredTicket], *, now: bool
    ) -> list[UndeliveredTicket]:
        """Deliver what has changed; `now`: without regard to what was postponed, and to the end."""
        waits = "" if now else self.postponed.find_retry_time(self.route.name, self.desk.clock.now())
        if waits:
            return [UndeliveredTicket(self.route.name, "", self.postponed.get_reason(self.route.name), waits)]
        failed: list[UndeliveredTicket] = []
        ends_at = time.monotonic() + (float("inf") if now else SINK_BUDGET_S)
        try:
            sink = open_sink(self.route, self.desk.fleet.root, self.desk.home)
            for one in tickets:
                known = got.get(one.ticket.id)
                if _is_due(one, known, sink) and time.monotonic() < ends_at:
                    failed += self._deliver_ticket(sink, one, known, now=now)
            self.postponed.clear(self.route.name)
        except Exception as error:  # a sink is no reason to stop, whatever it made of an answer
            failed.append(self._postpone("", error))
        return failed

    def _deliver_ticket(
        self, sink: TicketSink, one: TicketRecord, known: DeliveredTicket | None, *, now: bool
    ) -> list[UndeliveredTicket]:
        """Deliver one ticket and journal it; return why not, where this ticket alone is refused."""
        name, version = f"{self.route.name}/{one.ticket.id}", compute_ticket_version(one)
        if not now and (waits := self.postponed.find_retry_time(name, self.desk.clock.now())):
            return [UndeliveredTicket(self.route.name, one.ticket.id, self.postponed.get_reason(name), waits)]
        try:
            external = self._deliver_with_retries(sink, one, version, known.external if known else "")
        except TicketRefusal as refused:
            return [self._postpone(one.ticket.id, refused)]
        self.postponed.clear(name)
        self._journal(one, version, redact(external))
        return []

    def _deliver_with_retries(self, sink: TicketSink, one: TicketRecord, version: str, external: str) -> str:
        for attempt in range(MAX_ATTEMPTS):
            try:
                return sink.deliver(one, version, external)
            except SinkUnavailable as error:
                wait_s = error.after_s or 0.2 * 4**attempt
                if not error.soon or wait_s > MAX_WAIT_S or attempt == MAX_ATTEMPTS - 1:
                    raise
                self.pause(wait_s)
        raise AssertionError("the last attempt returns or raises")

    def _journal(self, one: TicketRecord, version: str, external: str) -> None:
        body = {"ticket": one.ticket.id, "title": one.ticket.title, "sink": self.route.name, "to": self.destination}
        body |= {"version": version, "external": external}
        ident = derive_id(TICKET_DELIVERED, self.route.name, self.destination, one.ticket.id, version)
        self.desk.ledger.append(LedgerEntry(ident, self.desk.now, TICKET_DELIVERED, one.ticket.node, body))

    def _postpone(self, ticket: str, error: Exception) -> UndeliveredTicket:
        """Leave the sink, or one ticket of it, alone for a while: twice as long each time, an hour at most."""
        name = f"{self.route.name}/{ticket}" if ticket else self.route.name
        if isinstance(error, AssayError):
            why, after_s = redact(str(error)), getattr(error, "after_s", 0.0)
        else:
            why, after_s = f"TicketRoute {self.route.name}: a mistake of assay itself: {type(error).__name__}", 0.0
        again_at = self.postponed.postpone(name, why, self.desk.clock.now(), timedelta(seconds=after_s))
        self.desk.progress(f"a ticket was not delivered: {why.splitlines()[0]}")
        return UndeliveredTicket(self.route.name, ticket, why, again_at)


@contextmanager
def hold_delivery_lease(ledger: Ledger) -> Iterator[bool]:
    """Be the one who sees to tickets while the block lasts; gives False where another controller does."""
    if not is_shared(ledger):  # whoever works on a file is alone on it
        yield True
        return
    ours = ledger.claim_lease(DELIVERY_LEASE, current_process(), DELIVERY_LEASE_S)
    try:
        yield ours
    finally:
        ledger.release(DELIVERY_LEASE, current_process())


def deliver_tickets(
    desk: DeliveryContext, *, now: bool = False, pause: Callable[[float], None] = time.sleep
) -> list[UndeliveredTicket]:
    """Bring every sink to what the tickets are; return what was not taken. Only one process may do this at a time."""
    entries = desk.ledger.entries(kinds=[*TICKET_KINDS, TICKET_DELIVERED])
    tickets = list_tickets(entries)
    postponed = DeliveryBackoff(desk.home / "delivery.json")
    failed: list[UndeliveredTicket] = []
    for route in list_ticket_routes(desk.fleet, desk.home):
        outbox = _RouteDelivery(desk, route, postponed, pause)
        failed += outbox.deliver_changes(tickets, _read_delivered(entries, route.name, outbox.destination), now=now)
    postponed.save()
    return failed


def compute_ticket_version(one: TicketRecord) -> str:
    """Return what changes exactly when there is something new to say of a ticket."""
    history = [(each.at, each.what, each.why) for each in one.history]
    return derive_id(json.dumps([one.ticket.as_json(), history], sort_keys=True))


def _read_delivered(entries: Iterable[LedgerEntry], sink: str, to: str) -> dict[str, DeliveredTicket]:
    bodies = [entry.body for entry in entries if entry.kind == TICKET_DELIVERED]
    ours = [body for body in bodies if (body["sink"], body["to"]) == (sink, to)]
    return {body["ticket"]: DeliveredTicket(body["version"], body["external"]) for body in ours}


def _is_due(one: TicketRecord, known: DeliveredTicket | None, sink: TicketSink) -> bool:
    """Whether there is something to deliver. Work that was over before a sink heard of it is nobody's there."""
    if known is None:
        return not one.closed_at
    return known.version != compute_ticket_version(one) or not sink.holds(known.external)
