"""Photos of tickets: `POST` takes one from a technician's phone, `GET` gives it back. The body is the photo itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from assay.act.orders.orders import OperatorIdentity
from assay.act.orders.ticket_photos import MAX_PHOTO_BYTES, add_photo, read_photo
from assay.model.errors import AssayError
from assay.model.ticket import MEDIA_TYPES, TicketRecord
from assay.tell.server.app_state import AppState
from assay.tell.server.gate import SECURITY_HEADERS, AccessGate
from assay.tell.server.requests import make_refusal, read_body

UPLOAD_S = 60.0
"""A phone between racks is slow."""
UPLOADS_AT_ONCE = 4
"""So many bodies of some megabytes are in memory at the same time."""
PHOTO = "photo"
"""The name under which the rights of visitors have it."""


def routes(state: AppState) -> Sequence[BaseRoute]:
    """Return the routes of photos."""
    photos = PhotoRoutes(state)
    return [
        Route("/api/v1/tickets/{id}/photos", photos.take, methods=["POST"]),
        Route("/api/v1/tickets/{id}/photos/{sha256}", photos.give, methods=["GET"]),
    ]


class PhotoRoutes:
    """Takes photos from those who may order `done`, and shows them to everybody who may see tickets."""

    def __init__(self, state: AppState) -> None:
        self._state, self._gate = state, AccessGate(state)
        self._uploads = 0

    async def take(self, request: Request) -> Response:
        """Keep the photo in the body."""
        visitor = await self._gate.admit(request)
        if not visitor.may_order(PHOTO):
            raise make_refusal(403, f"a {visitor.role} adds no photos")
        record = self._find_ticket(request)
        if self._uploads >= UPLOADS_AT_ONCE:
            raise make_refusal(503, "other photos are on their way", wait_s=5)
        self._uploads += 1
        try:
            content = await read_body(request, MAX_PHOTO_BYTES, UPLOAD_S)
            operator = OperatorIdentity(visitor.name, "", self._state.context.now)
            digest = await run_in_threadpool(partial(add_photo, self._state.context, record, operator, content))
        except AssayError as error:
            raise make_refusal(503 if error.where else 422, error.what) from None
        finally:
            self._uploads -= 1
        return JSONResponse({"sha256": digest}, 201, SECURITY_HEADERS)

    async def give(self, request: Request) -> Response:
        """Send a photo, as what it is by its first bytes."""
        visitor = await self._gate.admit(request)
        if visitor.is_customer:
            raise make_refusal(403, "photos are for the operators of the fleet")
        record, digest = self._find_ticket(request), request.path_params["sha256"]
        stored = await run_in_threadpool(read_photo, self._state.context.home, record, digest)
        if stored is None:
            raise make_refusal(404, "there is no such photo on this server")
        photo, content = stored
        name = f'inline; filename="{digest[:12]}.{photo.type}"'
        kept = {"Content-Disposition": name, "Cache-Control": "private, max-age=86400, immutable"}
        return Response(content, headers={**SECURITY_HEADERS, **kept}, media_type=MEDIA_TYPES[photo.type])

    def _find_ticket(self, request: Request) -> TicketRecord:
        ident = request.path_params["id"]
        ticket = next((record for record in self._state.records.read_tickets() if record.ticket.id == ident), None)
        if ticket is None:
            raise make_refusal(404, "there is no such ticket")
        return ticket
