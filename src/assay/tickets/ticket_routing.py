"""Which routes a fleet has, which destination each one leads to, and how to open its sink."""

from __future__ import annotations

from pathlib import Path

from assay.fleet.secret_lookup import describe_reference, read_secret
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.ledger_entry import derive_id
from assay.model.plugins import TICKET_SINKS
from assay.model.specs.ticket_route import TicketRoute
from assay.tickets.sink_protocol import SinkContext, TicketSink

DEFAULT_ROUTE = {"kind": "TicketRoute", "name": "files", "markdown": {}}


def list_ticket_routes(fleet: Fleet, home: Path) -> list[TicketRoute]:
    """Return the declared routes, or the default route to Markdown files if there is none.

    A fleet in a lab (`home` is its `.assay/`) has local routes only: nobody must be sent to a simulated node.
    """
    in_lab = (home / "lab" / "clock.json").exists()
    routes = [one for one in fleet.ticket_routes.values() if not in_lab or TICKET_SINKS.load(one.sink).is_local]
    return routes or [TicketRoute.model_validate(DEFAULT_ROUTE)]


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
