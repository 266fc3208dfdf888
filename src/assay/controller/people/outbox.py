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

from assay.actions.sinks.routes import destination, routes_of, sink_of
from assay.actions.sinks.sink import Refused, Sink, Unavailable
from assay.controller.desk import Desk
from assay.controller.people.postponed import Postponed
from assay.controller.people.ticket_list import KINDS, listed
from assay.controller.share import me
from assay.ledger.store import Ledger
from assay.ledger.url import is_shared
from assay.model.entry import Entry, derived_id
from assay.model.errors import Trouble
from assay.model.secrets import hidden
from assay.model.ticket import Listed
from assay.model.ticket_route import TicketRoute

DELIVERED = "ticket.delivered"
POST = "tickets"
"""The lease of the controller that sees to tickets, where several share a ledger."""
LEASE_S = 120.0
ATTEMPTS = 3
WAIT_S = 3.0
"""How long a pass waits for a sink that asks for patience; what asks for more is left to a later pass."""
BUDGET_S = 60.0
"""How long a pass works for one sink."""


@dataclass(frozen=True, slots=True)
class Undelivered:
    """What a sink did not take, why, and when it is tried again. `ticket` is "" where it took nothing at all."""

    route: str
    ticket: str
    why: str
    again_at: str = ""


@dataclass(frozen=True, slots=True)
class Got:
    """What a sink has of a ticket, and how it calls it."""

    version: str
    external: str


class _Outbox:
    """The delivery to one route."""

    def __init__(self, desk: Desk, route: TicketRoute, postponed: Postponed, pause: Callable[[float], None]) -> None:
        self.desk, self.route, self.postponed, self.pause = desk, route, postponed, pause
        self.to = destination(route)

    def deliver(self, tickets: Iterable[Listed], got: Mapping[str, Got], *, now: bool) -> list[Undelivered]:
        """Deliver what has changed; `now`: without regard to what was postponed, and to the end."""
        waits = "" if now else self.postponed.until(self.route.name, self.desk.clock.now())
        if waits:
            return [Undelivered(self.route.name, "", self.postponed.why(self.route.name), waits)]
        failed: list[Undelivered] = []
        ends_at = time.monotonic() + (float("inf") if now else BUDGET_S)
        try:
            sink = sink_of(self.route, self.desk.fleet.root, self.desk.home)
            for one in tickets:
                known = got.get(one.ticket.id)
                if _due(one, known, sink) and time.monotonic() < ends_at:
                    failed += self._one(sink, one, known, now=now)
            self.postponed.over(self.route.name)
        except Exception as error:  # a sink is no reason to stop, whatever it made of an answer
            failed.append(self._postpone("", error))
        return failed

    def _one(self, sink: Sink, one: Listed, known: Got | None, *, now: bool) -> list[Undelivered]:
        """Deliver one ticket and journal it; return why not, where this ticket alone is refused."""
        name, version = f"{self.route.name}/{one.ticket.id}", version_of(one)
        if not now and (waits := self.postponed.until(name, self.desk.clock.now())):
            return [Undelivered(self.route.name, one.ticket.id, self.postponed.why(name), waits)]
        try:
            external = self._patiently(sink, one, version, known.external if known else "")
        except Refused as refused:
            return [self._postpone(one.ticket.id, refused)]
        self.postponed.over(name)
        self._journal(one, version, hidden(external))
        return []

    def _patiently(self, sink: Sink, one: Listed, version: str, external: str) -> str:
        for attempt in range(ATTEMPTS):
            try:
                return sink.deliver(one, version, external)
            except Unavailable as error:
                wait_s = error.after_s or 0.2 * 4**attempt
                if not error.soon or wait_s > WAIT_S or attempt == ATTEMPTS - 1:
                    raise
                self.pause(wait_s)
        raise AssertionError("the last attempt returns or raises")

    def _journal(self, one: Listed, version: str, external: str) -> None:
        body = {"ticket": one.ticket.id, "title": one.ticket.title, "sink": self.route.name, "to": self.to}
        body |= {"version": version, "external": external}
        ident = derived_id(DELIVERED, self.route.name, self.to, one.ticket.id, version)
        self.desk.ledger.append(Entry(ident, self.desk.now, DELIVERED, one.ticket.node, body))

    def _postpone(self, ticket: str, error: Exception) -> Undelivered:
        """Leave the sink, or one ticket of it, alone for a while: twice as long each time, an hour at most."""
        name = f"{self.route.name}/{ticket}" if ticket else self.route.name
        if isinstance(error, Trouble):
            why, after_s = hidden(str(error)), getattr(error, "after_s", 0.0)
        else:
            why, after_s = f"TicketRoute {self.route.name}: a mistake of assay itself: {type(error).__name__}", 0.0
        again_at = self.postponed.postpone(name, why, self.desk.clock.now(), timedelta(seconds=after_s))
        self.desk.progress(f"a ticket was not delivered: {why.splitlines()[0]}")
        return Undelivered(self.route.name, ticket, why, again_at)


@contextmanager
def seeing_to_tickets(ledger: Ledger) -> Iterator[bool]:
    """Be the one who sees to tickets while the block lasts; gives False where another controller does."""
    if not is_shared(ledger):  # whoever works on a file is alone on it
        yield True
        return
    ours = ledger.claim(POST, me(), LEASE_S)
    try:
        yield ours
    finally:
        ledger.let_go(POST, me())


def deliver_tickets(desk: Desk, *, now: bool = False, pause: Callable[[float], None] = time.sleep) -> list[Undelivered]:
    """Bring every sink to what the tickets are; return what was not taken. Only one process may do this at a time."""
    entries = desk.ledger.entries(kinds=[*KINDS, DELIVERED])
    tickets = listed(entries)
    postponed = Postponed(desk.home / "delivery.json")
    failed: list[Undelivered] = []
    for route in routes_of(desk.fleet, desk.home):
        outbox = _Outbox(desk, route, postponed, pause)
        failed += outbox.deliver(tickets, _got(entries, route.name, outbox.to), now=now)
    postponed.keep()
    return failed


def version_of(one: Listed) -> str:
    """Return what changes exactly when there is something new to say of a ticket."""
    history = [(each.at, each.what, each.why) for each in one.history]
    return derived_id(json.dumps([one.ticket.as_json(), history], sort_keys=True))


def _got(entries: Iterable[Entry], sink: str, to: str) -> dict[str, Got]:
    bodies = [entry.body for entry in entries if entry.kind == DELIVERED]
    ours = [body for body in bodies if (body["sink"], body["to"]) == (sink, to)]
    return {body["ticket"]: Got(body["version"], body["external"]) for body in ours}


def _due(one: Listed, known: Got | None, sink: Sink) -> bool:
    """Whether there is something to deliver. Work that was over before a sink heard of it is nobody's there."""
    if known is None:
        return not one.closed_at
    return known.version != version_of(one) or not sink.holds(known.external)
