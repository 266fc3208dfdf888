"""`GET /healthz`: whether what agents send is taken in."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from assay.web.room import Room


def routes(room: Room) -> Sequence[BaseRoute]:
    """Return the route."""

    async def health(_request: Request) -> Response:
        well = room.intake.alive()
        return JSONResponse({"ok": well}, 200 if well else 503)

    return [Route("/healthz", health)]
