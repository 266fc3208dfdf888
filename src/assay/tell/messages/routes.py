"""The routes that tickets take, and the attempts to reach the sink of each: a few at once, then after growing waits.

Deliveries that failed wait in a file that may be deleted.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from assay.adapters.tickets.sink import SinkContext, SinkUnavailable
from assay.declare.secret_lookup import describe_reference, read_secret
from assay.model.backoff import Backoff
from assay.model.errors import AssayError
from assay.model.facts import fact, frozen
from assay.model.fleet import Fleet
from assay.model.ledger_entry import derive_id
from assay.model.plugins import load_sink_class
from assay.model.specs.spec_document import load_spec_model
from assay.model.text.safe_text import redact

if TYPE_CHECKING:
    from assay.act.loop.context import ControllerContext
    from assay.model.specs.credential_reference import CredentialReference
    from assay.model.specs.ticket_route import TicketRoute


SINK_BACKOFF = Backoff((60.0,), longest_s=3600.0)
MAX_ATTEMPTS = 3
REQUEST_BACKOFF = Backoff((0.2,), factor=4.0)
MAX_WAIT_S = 3.0
"""The longest wait for a sink within a pass. A sink that asks for more is tried in a later pass."""
DEFAULT_ROUTE = {"kind": "TicketRoute", "name": "files", "markdown": {}}


class PostponedDeliveries:
    """The failed deliveries by name (`ROUTE`, or `ROUTE/TICKET` for one ticket): why, how often, and until when.

    A file that is missing or damaged counts as empty.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._failures = _read_failures(path)
        self._saved_text = json.dumps(self._failures)

    def find_retry_time(self, name: str, now: datetime) -> str:
        """Return when `name` may be tried again (ISO 8601), "" if it may be tried now."""
        failure = self._failures.get(name)
        return failure["until"] if failure and datetime.fromisoformat(failure["until"]) > now else ""

    def get_reason(self, name: str) -> str:
        """Return why `name` waits."""
        return str(self._failures[name]["why"])

    def list_failures(self) -> list[tuple[str, str]]:
        """Return every name whose last delivery failed, and why."""
        return [(name, str(failure["why"])) for name, failure in self._failures.items()]

    def postpone(self, name: str, reason: str, now: datetime, at_least: timedelta) -> str:
        """Note a failure. Return until when `name` waits (ISO 8601): not less than `at_least` from `now`."""
        times = self._failures[name]["times"] + 1 if name in self._failures else 1
        wait = max(at_least, timedelta(seconds=SINK_BACKOFF.wait_s(times)))
        self._failures[name] = {"until": (now + wait).isoformat(), "times": times, "why": reason}
        return str(self._failures[name]["until"])

    def clear(self, name: str) -> None:
        """Forget the failures of `name`."""
        self._failures.pop(name, None)

    def save(self) -> None:
        """Write the file, if anything changed."""
        text = json.dumps(self._failures)
        if text != self._saved_text:
            scratch = self._path.with_suffix(".new")
            scratch.write_text(text, encoding="utf-8")
            scratch.replace(self._path)


def _read_failures(path: Path) -> dict[str, Any]:
    try:
        failures = json.loads(path.read_text(encoding="utf-8"))
        for failure in failures.values():
            if datetime.fromisoformat(failure["until"]).tzinfo is None:
                return {}
            _ = (int(failure["times"]), failure["why"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return dict(failures)


Answer = TypeVar("Answer")


@fact
class UndeliveredTicket:
    """A ticket that a sink still lacks."""

    route: str
    """The name of the TicketRoute."""
    ticket: str
    """The id of the ticket; "" if the sink as a whole failed."""
    reason: str
    """What the sink, or the way to it, said."""
    retry_at: str = ""
    """When it is tried again: ISO 8601; "" if that is not known."""


@frozen
class AttemptRules:
    """How a delivery tries its routes. `immediately` tries postponed routes too; `pause` waits for some seconds."""

    context: ControllerContext
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
            reason, after_s = redact(str(error)), getattr(error, "after_s", 0.0)
        else:
            reason = (
                f"TicketRoute {route}: internal error in the ticket sink {self._route.sink}: {type(error).__name__}"
            )
            after_s = 0.0
        now, at_least = self._rules.context.clock.now(), timedelta(seconds=after_s)
        retry_at = self._postponed.postpone(self._name(ticket), reason, now, at_least)
        self._rules.context.progress(f"a ticket was not delivered: {reason.splitlines()[0]}")
        return UndeliveredTicket(route, ticket, reason, retry_at)

    def _name(self, ticket: str) -> str:
        return f"{self._route.name}/{ticket}" if ticket else self._route.name


def list_ticket_routes(fleet: Fleet) -> list[TicketRoute]:
    """Return the declared routes, or the default route to Markdown files if there is none.

    A lab has the files in its own home only: nobody must be sent to a simulated node.
    """
    if fleet.ticket_routes and not fleet.is_lab:
        return list(fleet.ticket_routes.values())
    model: Any = load_spec_model("TicketRoute")
    return [model.model_validate(DEFAULT_ROUTE)]


def derive_destination_id(route: TicketRoute) -> str:
    """Return an id of the place that a route leads to. It changes when the route is pointed elsewhere."""
    return derive_id(*route.settings.destination())


def open_sink(route: TicketRoute, context: ControllerContext) -> Any:
    """Return the sink of a route. Raises AssayError if its secret cannot be read."""
    root = context.fleet.root
    where, reference = f"TicketRoute {route.name}", route.credentials
    secret = read_sink_secret(reference, root, where) if reference else ""
    given = SinkContext(where, secret, root, context.home)
    return load_sink_class(route.sink)(route.settings, given)


def read_sink_secret(reference: CredentialReference, root: Path, declared: str) -> str:
    """Return the secret that the `credentials` of what is `declared` lead to: printable ASCII. Raises AssayError."""
    where = f"{declared} credentials"
    try:
        text = read_secret(reference, root)
    except AssayError as error:
        raise AssayError(error.what, where=where, fix=error.fix) from None
    if not text or not text.isprintable() or not text.isascii():
        state = "holds characters that an HTTP header cannot carry" if text else "is not set, or gives nothing"
        fix = "put the token there, and nothing else"
        raise AssayError(f"{describe_reference(reference)} {state}", where=where, fix=fix)
    return text
