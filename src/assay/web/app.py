"""The web application: a module a kind of route, each with `routes(room)`. A new one is a line in `MODULES`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute

from assay.web import agents, alertmanager, health
from assay.web.replies import broken, told
from assay.web.room import Room

MODULES: Sequence[Callable[[Room], Sequence[BaseRoute]]] = (health.routes, agents.routes, alertmanager.routes)


def app(room: Room) -> Starlette:
    """Return the application. While it runs, what is sent is taken in."""

    @asynccontextmanager
    async def running(_app: Starlette) -> AsyncIterator[None]:
        room.intake.start()
        yield
        room.intake.stop()

    every = [route for routes in MODULES for route in routes(room)]
    return Starlette(routes=every, lifespan=running, exception_handlers={HTTPException: told, Exception: broken})
