"""The attempts to reach the sink of one route: a few at once, and later ones that wait after each failure."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from assay.adapters.tickets.sink_protocol import SinkUnavailable
from assay.ledger.store import Ledger
from assay.model.backoff import Backoff
from assay.model.clock import Clock
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.text.secret_redaction import redact
from assay.tell.messages.delivery_backoff import PostponedDeliveries

if TYPE_CHECKING:
    from assay.model.specs.ticket_route import TicketRoute

MAX_ATTEMPTS = 3
REQUEST_BACKOFF = Backoff((0.2,), factor=4.0)
MAX_WAIT_S = 3.0
"""The longest wait for a sink within a pass. A sink that asks for more is tried in a later pass."""
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class UndeliveredTicket:
    """A ticket that a sink did not take, why, and when it is tried again (ISO 8601).

    `ticket` is "" if the sink takes no ticket at all.
    """

    route: str
    ticket: str
    reason: str
    retry_at: str = ""


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


@dataclass(frozen=True, slots=True)
class AttemptRules:
    """How a delivery tries its routes. `immediately` tries postponed routes too; `pause` waits for some seconds."""

    context: DeliveryContext
    postponed: PostponedDeliveries
    immediately: bool = False
    pause: Callable[[float], None] = time.sleep


class RouteAttempts:
    """The attempts for one route, or for one ticket of it."""

    def __init__(self, route: TicketRoute, rules: AttemptRules) -> None:
        self._route, self._rules, self._postponed = route, rules, rules.postponed

    def find_postponed(self, ticket: str = "") -> UndeliveredTicket | None:
        """Return the delivery that waits after a failure, None if it may be tried now."""
        name = self._name(ticket)
        until = (
            "" if self._rules.immediately else self._postponed.find_retry_time(name, self._rules.context.clock.now())
        )
        return UndeliveredTicket(self._route.name, ticket, self._postponed.get_reason(name), until) if until else None

    def call(self, send: Callable[[], Answer]) -> Answer:
        """Return what `send` returns. A sink that is away for a moment is asked again."""
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                return send()
            except SinkUnavailable as error:
                wait_s = error.after_s or REQUEST_BACKOFF.wait_s(attempt)
                if not error.soon or wait_s > MAX_WAIT_S or attempt == MAX_ATTEMPTS:
                    raise
                self._rules.pause(wait_s)
        raise AssertionError("the last attempt returns or raises")

    def clear(self, ticket: str = "") -> None:
        """Forget the failures of the route, or of one ticket."""
        self._postponed.clear(self._name(ticket))

    def postpone(self, error: Exception, ticket: str = "") -> UndeliveredTicket:
        """Let the route, or one ticket of it, wait: after each failure twice as long, up to an hour."""
        route = self._route.name
        if isinstance(error, AssayError):
            why, after_s = redact(str(error)), getattr(error, "after_s", 0.0)
        else:
            why = f"TicketRoute {route}: internal error in the ticket sink {self._route.sink}: {type(error).__name__}"
            after_s = 0.0
        now, at_least = self._rules.context.clock.now(), timedelta(seconds=after_s)
        retry_at = self._postponed.postpone(self._name(ticket), why, now, at_least)
        self._rules.context.progress(f"a ticket was not delivered: {why.splitlines()[0]}")
        return UndeliveredTicket(route, ticket, why, retry_at)

    def _name(self, ticket: str) -> str:
        return f"{self._route.name}/{ticket}" if ticket else self._route.name
