"""Delivers tickets to their sinks. The ledger records what each sink has; a sink that fails stops no other.

Routes say which destination gets which tickets, and how its sink is opened.

A sink gets a ticket while it is open, and then every change of it. If a delivery is killed, the next one makes the sink
look for the ticket first, so that no ticket is there twice. `.assay/delivery.json` holds how long a failing sink waits.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from assay.fleet.secret_lookup import describe_reference, read_secret
from assay.ledger.leases_and_locks import current_process
from assay.ledger.store import Ledger
from assay.model.backoff import Backoff
from assay.model.clock import Clock
from assay.model.entries.ticket_entries import TicketDeliveredEntry
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.plugins import TICKET_SINKS
from assay.model.secret_redaction import redact
from assay.model.specs.spec_document import load_spec_model
from assay.model.ticket import TicketRecord
from assay.tickets.delivery_backoff import PostponedDeliveries
from assay.tickets.sink_protocol import SinkContext, SinkUnavailable, TicketRefusal, TicketSink
from assay.tickets.ticket_diff import TICKET_KINDS, list_tickets

if TYPE_CHECKING:
    from assay.model.specs.ticket_route import TicketRoute

TICKET_DELIVERED = TicketDeliveredEntry.kind
DELIVERY_LEASE = "tickets"
"""The lease of the controller that delivers tickets, where several controllers share a ledger."""
DELIVERY_LEASE_S = 120.0
MAX_ATTEMPTS = 3
REQUEST_BACKOFF = Backoff((0.2,), factor=4.0)
MAX_WAIT_S = 3.0
"""The longest wait for a sink within a pass. A sink that asks for more is tried in a later pass."""
SINK_BUDGET_S = 60.0
"""The time that one pass spends on one sink."""

DEFAULT_ROUTE = {"kind": "TicketRoute", "name": "files", "markdown": {}}


@dataclass(frozen=True, slots=True)
class UndeliveredTicket:
    """A ticket that a sink did not take, why, and when it is tried again (ISO 8601).

    `ticket` is "" if the sink takes no ticket at all.
    """

    route: str
    ticket: str
    reason: str
    retry_at: str = ""


@dataclass(frozen=True, slots=True)
class DeliveredTicket:
    """The version of a ticket that a sink has, and the sink's own name for it."""

    version: str
    external_id: str


class DeliveryContext(Protocol):
    """What a delivery needs: `home` is `.assay/`, `now` the fleet's time as ISO 8601, `progress` shows one line."""

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


def deliver_tickets(
    context: DeliveryContext, *, immediately: bool = False, pause: Callable[[float], None] = time.sleep
) -> list[UndeliveredTicket]:
    """Bring every sink up to date. Return what was not delivered. Only one process may do this at a time.

    `immediately` tries postponed deliveries too, and sets no time limit for a sink.
    """
    entries = context.ledger.entries(kinds=[*TICKET_KINDS, TICKET_DELIVERED])
    tickets = list_tickets(entries)
    postponed = PostponedDeliveries(context.home / "delivery.json")
    failed: list[UndeliveredTicket] = []
    for route in list_ticket_routes(context.fleet, context.home):
        failed += _RouteDelivery(context, route, postponed, pause, immediately).deliver(tickets, entries)
    postponed.save()
    return failed


@contextmanager
def hold_delivery_lease(ledger: Ledger, *, keep: bool = False) -> Iterator[bool]:
    """Be the one controller that delivers tickets while the block lasts. Yields False if another controller is.

    With `keep`, the lease stays until it ends by itself, so that the same controller delivers the next time too.
    """
    if not ledger.is_shared:  # a ledger file has one controller
        yield True
        return
    ours = ledger.claim_lease(DELIVERY_LEASE, current_process(), DELIVERY_LEASE_S)
    try:
        yield ours
    finally:
        if not keep:
            ledger.release(DELIVERY_LEASE, current_process())


class _RouteDelivery:
    """The delivery to one route."""

    def __init__(
        self,
        context: DeliveryContext,
        route: TicketRoute,
        postponed: PostponedDeliveries,
        pause: Callable[[float], None],
        immediately: bool,
    ) -> None:
        self._context, self._route, self._postponed, self._pause = context, route, postponed, pause
        self._immediately = immediately
        self._destination = derive_destination_id(route)

    def deliver(self, tickets: Iterable[TicketRecord], entries: Iterable[LedgerEntry]) -> list[UndeliveredTicket]:
        """Deliver every ticket that changed since `entries` recorded its last delivery."""
        name = self._route.name
        if waiting := self._find_postponed(name, ""):
            return [waiting]
        delivered = _read_delivered(entries, name, self._destination)
        ends_at = time.monotonic() + (math.inf if self._immediately else SINK_BUDGET_S)
        failed: list[UndeliveredTicket] = []
        try:
            sink = open_sink(self._route, self._context.fleet.root, self._context.home)
            for record in tickets:
                known = delivered.get(record.ticket.id)
                if _is_due(record, known, sink) and time.monotonic() < ends_at:
                    failed += self._deliver_ticket(sink, record, known.external_id if known else "")
            self._postponed.clear(name)
        except Exception as error:  # the errors of one sink, ours or a plug-in's, must not stop the others
            failed.append(self._postpone("", error))
        return failed

    def _find_postponed(self, name: str, ticket: str) -> UndeliveredTicket | None:
        until = "" if self._immediately else self._postponed.find_retry_time(name, self._context.clock.now())
        return UndeliveredTicket(self._route.name, ticket, self._postponed.get_reason(name), until) if until else None

    def _deliver_ticket(self, sink: TicketSink, record: TicketRecord, external_id: str) -> list[UndeliveredTicket]:
        """Deliver one ticket and record it in the ledger. Return the ticket if the sink refuses it."""
        name, version = f"{self._route.name}/{record.ticket.id}", compute_ticket_version(record)
        if waiting := self._find_postponed(name, record.ticket.id):
            return [waiting]
        try:
            external_id = self._deliver_with_retries(sink, record, version, external_id)
        except TicketRefusal as refusal:
            return [self._postpone(record.ticket.id, refusal)]
        self._postponed.clear(name)
        self._record_delivery(record, version, redact(external_id))
        return []

    def _deliver_with_retries(self, sink: TicketSink, record: TicketRecord, version: str, external_id: str) -> str:
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                return sink.deliver(record, version, external_id)
            except SinkUnavailable as error:
                wait_s = error.after_s or REQUEST_BACKOFF.wait_s(attempt)
                if not error.soon or wait_s > MAX_WAIT_S or attempt == MAX_ATTEMPTS:
                    raise
                self._pause(wait_s)
        raise AssertionError("the last attempt returns or raises")

    def _record_delivery(self, record: TicketRecord, version: str, external_id: str) -> None:
        ticket, route = record.ticket, self._route.name
        delivered = TicketDeliveredEntry(ticket.id, ticket.title, route, self._destination, version, external_id)
        ident = derive_id(TICKET_DELIVERED, route, self._destination, ticket.id, version)
        self._context.ledger.append(delivered.make_entry(ident, self._context.now, ticket.node))

    def _postpone(self, ticket: str, error: Exception) -> UndeliveredTicket:
        """Let the route, or one ticket of it, wait: after each failure twice as long, up to an hour."""
        route = self._route.name
        if isinstance(error, AssayError):
            why, after_s = redact(str(error)), getattr(error, "after_s", 0.0)
        else:
            why = f"TicketRoute {route}: internal error in the ticket sink {self._route.sink}: {type(error).__name__}"
            after_s = 0.0
        now, at_least = self._context.clock.now(), timedelta(seconds=after_s)
        retry_at = self._postponed.postpone(f"{route}/{ticket}" if ticket else route, why, now, at_least)
        self._context.progress(f"a ticket was not delivered: {why.splitlines()[0]}")
        return UndeliveredTicket(route, ticket, why, retry_at)


def compute_ticket_version(record: TicketRecord) -> str:
    """Return a digest that changes exactly when a ticket or its history changes."""
    history = [(event.at, event.what, event.why) for event in record.history]
    return derive_id(json.dumps([record.ticket.as_json(), history], sort_keys=True))


def _read_delivered(entries: Iterable[LedgerEntry], route: str, destination: str) -> dict[str, DeliveredTicket]:
    delivered = [TicketDeliveredEntry.read(entry) for entry in entries if entry.kind == TICKET_DELIVERED]
    ours = [one for one in delivered if (one.sink, one.destination) == (route, destination)]
    return {one.ticket: DeliveredTicket(one.ticket_version, one.external) for one in ours}


def _is_due(record: TicketRecord, known: DeliveredTicket | None, sink: TicketSink) -> bool:
    """Say whether to deliver a ticket. A ticket that was closed before the sink had it never goes there."""
    if known is None:
        return not record.closed_at
    return known.version != compute_ticket_version(record) or not sink.holds(known.external_id)


def list_ticket_routes(fleet: Fleet, home: Path) -> list[TicketRoute]:
    """Return the declared routes, or the default route to Markdown files if there is none.

    A fleet in a lab (`home` is its `.assay/`) has local routes only: nobody must be sent to a simulated node.
    """
    in_lab = (home / "lab" / "clock.json").exists()
    routes = [one for one in fleet.ticket_routes.values() if not in_lab or TICKET_SINKS.load(one.sink).is_local]
    if routes:
        return routes
    model: Any = load_spec_model("TicketRoute")
    return [model.model_validate(DEFAULT_ROUTE)]


def derive_destination_id(route: TicketRoute) -> str:
    """Return an id of the place that a route leads to. It changes when the route is pointed elsewhere."""
    return derive_id(*route.settings.destination())


def open_sink(route: TicketRoute, root: Path, home: Path) -> TicketSink:
    """Return the sink of a route. Raises AssayError if its secret cannot be read.

    `root` is the fleet repository, `home` its `.assay/`.
    """
    context = SinkContext(f"TicketRoute {route.name}", _read_secret(route, root), root, home)
    sink: TicketSink = TICKET_SINKS.load(route.sink)(route.settings, context)
    return sink


def _read_secret(route: TicketRoute, root: Path) -> str:
    reference = route.credentials
    if reference is None:
        return ""
    where = f"TicketRoute {route.name} credentials"
    try:
        text = read_secret(reference, root)
    except AssayError as error:
        raise AssayError(error.what, where=where, fix=error.fix) from None
    if not text or not text.isprintable() or not text.isascii():
        state = "holds characters that an HTTP header cannot carry" if text else "is not set, or gives nothing"
        fix = "put the token there, and nothing else"
        raise AssayError(f"{describe_reference(reference)} {state}", where=where, fix=fix)
    return text
