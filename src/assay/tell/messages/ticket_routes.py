"""Says which routes tickets take, where each leads, and opens the sink of a route with its secret."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.adapters.tickets.sink_protocol import SinkContext
from assay.declare.secret_lookup import describe_reference, read_secret
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.ledger_entry import derive_id
from assay.model.plugins import load_sink_class
from assay.model.specs.spec_document import load_spec_model
from assay.tell.messages.route_attempts import DeliveryContext

if TYPE_CHECKING:
    from assay.model.specs.credential_reference import CredentialReference
    from assay.model.specs.ticket_route import TicketRoute

DEFAULT_ROUTE = {"kind": "TicketRoute", "name": "files", "markdown": {}}


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


def open_sink(route: TicketRoute, context: DeliveryContext) -> Any:
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
