"""Delivers tickets to their sinks. The ledger records what each sink has; a sink that fails stops no other.

A sink gets a ticket while it is open, and then every change of it. If a delivery is killed, the next one makes the sink
look for the ticket first, so that no ticket is there twice. Tickets of nodes that assay only watches stay on this
machine. `.assay/delivery.json` holds how long a failing sink waits.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from assay.act.tickets.ticket_diff import TICKETS_WITHOUT_REPORTS
from assay.adapters.tickets.markdown import format_ticket_markdown
from assay.adapters.tickets.sink import TicketRefusal, TicketSink
from assay.ledger.ledger_reader import read_projection
from assay.model.entries.tickets import TicketDeliveredEntry
from assay.model.facts import frozen, to_json
from assay.model.ledger_entry import LedgerEntry, Projection, derive_id
from assay.model.plugins import load_sink_class
from assay.model.specs.technician_work import DigestSettings, SinkSettings
from assay.model.text.safe_text import redact
from assay.model.ticket import TicketRecord
from assay.tell.messages.digest import DigestDelivery, format_digest_lines, format_headline, make_preview, sort_items
from assay.tell.messages.routes import (
    AttemptRules,
    PostponedDeliveries,
    RouteAttempts,
    UndeliveredTicket,
    derive_destination_id,
    list_ticket_routes,
    open_sink,
)
from assay.tell.views.records import LiveRecords, RecordSource
from assay.tell.views.ticket_answers import answer_tickets

if TYPE_CHECKING:
    from assay.act.loop.context import ControllerContext
    from assay.model.specs.ticket_route import TicketRoute

TICKET_DELIVERED = TicketDeliveredEntry.kind
SINK_BUDGET_S = 60.0
"""The time that one pass spends on one sink."""


@frozen
class DeliveredTicket:
    """The version of a ticket that a sink has, and the sink's own name for it."""

    version: str
    external_id: str


def deliver_tickets(
    context: ControllerContext, *, immediately: bool = False, pause: Callable[[float], None] = time.sleep
) -> list[UndeliveredTicket]:
    """Bring every sink up to date. Return what was not delivered. Only one process may do this at a time.

    `immediately` tries postponed deliveries too, and sets no time limit for a sink.
    """
    tickets = list(read_projection(context.ledger, TICKETS_WITHOUT_REPORTS).values())
    allowed = [record for record in tickets if not context.fleet.is_watched(record.ticket.node, "ticket")]
    postponed = PostponedDeliveries(context.home / "delivery.json")
    rules = AttemptRules(context, postponed, immediately, pause)
    failed: list[UndeliveredTicket] = []
    for route in list_ticket_routes(context.fleet):
        stays_here = load_sink_class(route.sink).is_local
        failed.extend(_deliver_route(route, rules, tickets if stays_here else allowed))
    postponed.save()
    return failed


def format_previews(source: RecordSource) -> dict[str, str]:
    """Return by route what it would get of the open tickets; nothing is sent, and the lab's tickets are shown too."""
    fleet, records = source.fleet, read_projection(source.ledger_for_reading, TICKETS_WITHOUT_REPORTS).values()
    tickets = answer_tickets(source, [record for record in records if not record.closed_at])
    routes: dict[str, SinkSettings] = {route.name: route.settings for route in fleet.ticket_routes.values()}
    if not any(isinstance(settings, DigestSettings) for settings in routes.values()):
        routes["people"] = DigestSettings()
    previews: dict[str, str] = {}
    for name, settings in routes.items():
        is_digest = isinstance(settings, DigestSettings)
        digest = make_preview(
            name, settings if isinstance(settings, DigestSettings) else DigestSettings(), tickets, fleet
        )
        lines = [format_headline(digest), *format_digest_lines(digest)] if is_digest else []
        if digest.items:
            previews[name] = "\n".join(lines) or format_ticket_markdown(sort_items(digest)[0].record)
    return previews


def _deliver_route(
    route: TicketRoute, rules: AttemptRules, tickets: Sequence[TicketRecord]
) -> Iterator[UndeliveredTicket]:
    attempts = RouteAttempts(route, rules)
    if waiting := attempts.find_postponed():
        yield waiting
        return
    try:
        if isinstance(route.settings, DigestSettings):
            DigestDelivery(route, route.settings, rules, attempts).deliver(tickets)
        else:
            yield from _RouteDelivery(route, rules, attempts).deliver(tickets)
        attempts.clear()
    except Exception as error:  # the errors of one sink, ours or a plug-in's, must not stop the others
        yield attempts.postpone(error)


class _RouteDelivery:
    """The delivery to one route."""

    def __init__(self, route: TicketRoute, rules: AttemptRules, attempts: RouteAttempts) -> None:
        self._route, self._rules, self._attempts = route, rules, attempts
        self._destination = derive_destination_id(route)

    def deliver(self, tickets: Iterable[TicketRecord]) -> Iterator[UndeliveredTicket]:
        """Deliver every ticket that changed since its last delivery. Yield refused ones."""
        delivered = read_projection(self._rules.context.ledger, DELIVERIES)
        delivered_here = delivered.get((self._route.name, self._destination), {})
        ends_at = time.monotonic() + (math.inf if self._rules.immediately else SINK_BUDGET_S)
        sink, due = open_sink(self._route, self._rules.context), list[TicketRecord]()
        for record in tickets:
            known = delivered_here.get(record.ticket.id)
            if known is None:
                is_due = not record.closed_at  # a ticket that was closed before the sink had it never goes there
            else:
                is_due = known.version != compute_ticket_version(record) or not sink.holds(known.external_id)
            due += [record] if is_due else []
        for record in answer_tickets(LiveRecords(lambda: self._rules.context), due) if due else ():
            if time.monotonic() < ends_at:
                known = delivered_here.get(record.ticket.id)
                yield from self._deliver_ticket(sink, record, known.external_id if known else "")

    def _deliver_ticket(self, sink: TicketSink, record: TicketRecord, external_id: str) -> Iterator[UndeliveredTicket]:
        """Deliver one ticket and record it in the ledger. Yield the ticket if the sink refuses it."""
        ticket, version = record.ticket.id, compute_ticket_version(record)
        if waiting := self._attempts.find_postponed(ticket):
            yield waiting
            return
        try:
            given_id = self._attempts.call(lambda: sink.deliver(record, version, external_id))
        except TicketRefusal as refusal:
            yield self._attempts.postpone(refusal, ticket)
            return
        self._attempts.clear(ticket)
        self._record_delivery(record, version, redact(given_id))

    def _record_delivery(self, record: TicketRecord, version: str, external_id: str) -> None:
        ticket, route = record.ticket, self._route.name
        delivered = TicketDeliveredEntry(ticket.id, ticket.title, route, self._destination, version, external_id)
        ident = derive_id(TICKET_DELIVERED, route, self._destination, ticket.id, version)
        self._rules.context.ledger.append(delivered.make_entry(ident, self._rules.context.now, ticket.node))


def compute_ticket_version(record: TicketRecord) -> str:
    """Return a digest that changes exactly when a ticket or its history changes."""
    history = [(event.at, event.what, event.why) for event in record.history]
    return derive_id(json.dumps([to_json(record.ticket), history], sort_keys=True))


Deliveries = dict[tuple[str, str], dict[str, DeliveredTicket]]


def _add_delivery(deliveries: Deliveries, entry: LedgerEntry) -> Deliveries:
    delivery = TicketDeliveredEntry.read(entry)
    of_sink = deliveries.setdefault((delivery.sink, delivery.destination), {})
    of_sink[delivery.ticket] = DeliveredTicket(delivery.ticket_version, delivery.external)
    return deliveries


DELIVERIES = Projection[Deliveries](
    (TICKET_DELIVERED,),
    dict,
    _add_delivery,
    lambda deliveries: {sink: dict(tickets) for sink, tickets in deliveries.items()},
)
"""What each sink has, by its name and destination, and by the ticket's id."""
