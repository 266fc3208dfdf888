"""Serves the web application over HTTPS, until SIGTERM or SIGINT.

`GET /healthz`: whether what agents send is taken in.

The web application: a module a kind of route, each with `routes(room)`. A new one is a line in `ROUTE_BUILDERS`.
"""

from __future__ import annotations

import contextlib
import gc
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from assay.controller.enrollment import enroll_nodes
from assay.controller.fleet_reload import CurrentContext
from assay.model.errors import AssayError
from assay.web import agent_routes, alertmanager_webhook
from assay.web.app_state import AppState
from assay.web.batch_intake import BatchIntake
from assay.web.http_replies import reply_internal_error, reply_refusal
from assay.web.tokens_and_rate_limits import AgentTokens


def health_routes(room: AppState) -> Sequence[BaseRoute]:
    """Return the route."""

    async def health(_request: Request) -> Response:
        well = room.intake.alive()
        return JSONResponse({"ok": well}, 200 if well else 503)

    return [Route("/healthz", health)]


ROUTE_BUILDERS: Sequence[Callable[[AppState], Sequence[BaseRoute]]] = (
    health_routes,
    agent_routes.routes,
    alertmanager_webhook.routes,
)


def build_app(room: AppState) -> Starlette:
    """Return the application. While it runs, what is sent is taken in."""

    @asynccontextmanager
    async def running(_app: Starlette) -> AsyncIterator[None]:
        room.intake.start()
        yield
        room.intake.stop()

    every = [route for routes in ROUTE_BUILDERS for route in routes(room)]
    return Starlette(
        routes=every,
        lifespan=running,
        exception_handlers={HTTPException: reply_refusal, Exception: reply_internal_error},
    )


KEEP_ALIVE_S = 75
CONNECTIONS = 4096
SHUTDOWN_GRACE_S = 10
BACKLOG = 2048


class ListenConfig(NamedTuple):
    """Where to listen, and what to show: a certificate (with its chain) and its key, both PEM."""

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None


def serve(current: CurrentContext, door: ListenConfig, tell: Callable[[str], None]) -> None:
    """Serve a fleet, as it is declared at any time, until SIGTERM. Raises AssayError where it cannot listen."""
    context = _tls_context(door)
    with _open_listener(door) as listening:
        enroll_nodes(current.context)
        gc.freeze()  # the fleet is there to stay: a look through it for garbage holds up every batch
        room = AppState(current, AgentTokens(current.context.fleet.root, tell), BatchIntake(current, tell), tell)
        scheme, (host, port) = "https" if context else "http", listening.getsockname()[:2]
        tell(f"listens on {scheme}://{f'[{host}]' if ':' in host else host}:{port}")
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(_config(room, context)).run(sockets=[listening])


def _config(room: AppState, context: ssl.SSLContext | None) -> uvicorn.Config:
    return uvicorn.Config(
        build_app(room),
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=SHUTDOWN_GRACE_S,
        limit_concurrency=CONNECTIONS,
        ssl_context_factory=(lambda *_: context) if context else None,
    )


def _tls_context(door: ListenConfig) -> ssl.SSLContext | None:
    """Return the TLS context, None for plain HTTP, which is for this machine only. Raises Trouble."""
    if door.certificate is None:
        if not ipaddress.ip_address(door.host).is_loopback:
            fix = "give --cert and --key, or listen on 127.0.0.1"
            raise AssayError("tokens do not travel in the clear: plain HTTP is for loopback only", fix=fix)
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(door.certificate, door.key)
    except (OSError, ssl.SSLError) as error:
        raise AssayError(
            "no certificate and key can be read", where=str(door.certificate), fix=_certificate_fix(error)
        ) from None
    return context


def _certificate_fix(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return "give PEM files: the certificate with its chain, and the key that belongs to it, without a passphrase"
    return f"give files that can be read: {error.strerror}"


def _open_listener(door: ListenConfig) -> socket.socket:
    """Return a socket that listens already. With its protocol named, asyncio turns Nagle off."""
    family = socket.AF_INET6 if ":" in door.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((door.host, door.port))
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise AssayError(f"cannot listen: {error.strerror}", where=f"{door.host}:{door.port}") from None
    return sock
