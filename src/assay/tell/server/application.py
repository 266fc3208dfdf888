"""The application: its routes, and what runs beside them as long as the server does.

Each kind of route is a module with `routes(state)`. Add a new one to `ROUTE_BUILDERS`.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assay.model.service_manager import ALIVE, READY, notify_reloading, notify_service_manager
from assay.tell.api import api_routes, machine_reports, order_routes, photo_routes
from assay.tell.pages import page_routes
from assay.tell.server import (
    agent_routes,
    alertmanager_webhook,
    health_routes,
    identity_routes,
    image_routes,
    login_routes,
    metrics_routes,
    script_routes,
)
from assay.tell.server.app_state import AppState
from assay.tell.server.request_bodies_and_refusals import reply_internal_error, reply_refusal
from assay.tell.server.server_certificate import ServerCertificate

SWEEP_S = 0.5
CERTIFICATE_LOOK_S = 10.0


RouteBuilders = Sequence[Callable[[AppState], Sequence[BaseRoute]]]
BOOT_ROUTE_BUILDERS: RouteBuilders = (
    health_routes.routes,
    script_routes.routes,
    image_routes.routes,
    identity_routes.routes,
)
"""What machines that boot need. Secrets are taken and given by HTTPS alone."""
ROUTE_BUILDERS: RouteBuilders = (
    *BOOT_ROUTE_BUILDERS,
    metrics_routes.routes,
    agent_routes.routes,
    alertmanager_webhook.routes,
    page_routes.routes,
    login_routes.routes,
    api_routes.routes,
    order_routes.routes,
    photo_routes.routes,
    machine_reports.routes,
)


def build_app(state: AppState, certificate: ServerCertificate, builders: RouteBuilders = ROUTE_BUILDERS) -> Starlette:
    """Return the application. The intake of batches runs as long as it does."""

    @asynccontextmanager
    async def run_beside(_app: Starlette) -> AsyncIterator[None]:
        state.intake.start()
        sweeper = asyncio.create_task(_sweep(state, certificate))
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, read_again, state, certificate)
        yield
        sweeper.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sweeper
        state.refusals.flush(now=True)
        state.intake.stop()

    return Starlette(
        middleware=[Middleware(ContextHeader, state)],
        routes=[route for build in builders for route in build(state)],
        lifespan=run_beside,
        exception_handlers={HTTPException: reply_refusal, Exception: reply_internal_error},
    )


class ContextHeader:
    """Says in each reply what the server works on: `Assay-Context: fleet`, or `lab`."""

    def __init__(self, app: ASGIApp, state: AppState) -> None:
        self._app, self._state = app, state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and its reply back with the header."""

        async def send_with_header(message: Message) -> None:
            if message["type"] == "http.response.start":
                context = "lab" if self._state.context.fleet.is_lab else "fleet"
                MutableHeaders(scope=message)["Assay-Context"] = context
            await send(message)

        await self._app(scope, receive, send_with_header)


def read_again(state: AppState, certificate: ServerCertificate) -> None:
    """Read certificate, secrets and fleet again, after SIGHUP. No connection ends."""
    notify_reloading()
    state.report("SIGHUP: reads the certificate, the tokens and the fleet again")
    certificate.reload()
    state.tokens.forget()
    state.sessions.forget()
    state.current.look_again()
    notify_service_manager(READY)


async def _sweep(state: AppState, certificate: ServerCertificate) -> None:
    """Look for a new certificate, write refusals, and say that the server lives, until cancelled."""
    looked_at = 0.0
    while True:
        await asyncio.sleep(SWEEP_S)
        state.refusals.flush()
        notify_service_manager(ALIVE)
        if (now := asyncio.get_running_loop().time()) - looked_at >= CERTIFICATE_LOOK_S:
            looked_at = now
            certificate.reload()
