"""Serves agents and Alertmanager over HTTPS until SIGTERM or SIGINT. Also replies to `GET /healthz`.

Each kind of route is a module with `routes(state)`. Add a new one to `ROUTE_BUILDERS`.
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
from assay.web.batch_writer import BatchWriter
from assay.web.http_replies import reply_internal_error, reply_refusal
from assay.web.tokens_and_rate_limits import AgentTokens


def health_routes(state: AppState) -> Sequence[BaseRoute]:
    """Return the route `/healthz`: 200 while batches can be written, else 503."""

    async def health(_request: Request) -> Response:
        alive = state.intake.alive()
        return JSONResponse({"ok": alive}, 200 if alive else 503)

    return [Route("/healthz", health)]


ROUTE_BUILDERS: Sequence[Callable[[AppState], Sequence[BaseRoute]]] = (
    health_routes,
    agent_routes.routes,
    alertmanager_webhook.routes,
)


def build_app(state: AppState) -> Starlette:
    """Return the application. The intake of batches runs as long as the application."""

    @asynccontextmanager
    async def run_intake(_app: Starlette) -> AsyncIterator[None]:
        state.intake.start()
        yield
        state.intake.stop()

    return Starlette(
        routes=[route for build in ROUTE_BUILDERS for route in build(state)],
        lifespan=run_intake,
        exception_handlers={HTTPException: reply_refusal, Exception: reply_internal_error},
    )


KEEP_ALIVE_S = 75
CONNECTIONS = 4096
SHUTDOWN_GRACE_S = 10
BACKLOG = 2048


class ListenConfig(NamedTuple):
    """Where to listen, and the TLS certificate (with its chain) and key, both PEM."""

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None


def serve(current: CurrentContext, listen: ListenConfig, report: Callable[[str], None]) -> None:
    """Serve a fleet until SIGTERM; changes of its files take effect at the next batch. `report` shows a line to people.

    Raises AssayError if it cannot listen, or the certificate cannot be read.
    """
    tls = make_tls_context(listen)
    with _open_listener(listen) as listener:
        enroll_nodes(current.context)
        gc.freeze()  # the fleet is long-lived: collections that scan it would delay every batch
        tokens, intake = AgentTokens(current.context.fleet.root, report), BatchWriter(current, report)
        state = AppState(current, tokens, intake, report)
        scheme, (host, port) = "https" if tls else "http", listener.getsockname()[:2]
        report(f"listens on {scheme}://{f'[{host}]' if ':' in host else host}:{port}")
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(_make_config(state, tls)).run(sockets=[listener])


def _make_config(state: AppState, tls: ssl.SSLContext | None) -> uvicorn.Config:
    return uvicorn.Config(
        build_app(state),
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
        ssl_context_factory=(lambda *_: tls) if tls else None,
    )


def make_tls_context(listen: ListenConfig) -> ssl.SSLContext | None:
    """Return the TLS context, None for plain HTTP, which is allowed on loopback only.

    Raises AssayError for plain HTTP elsewhere, or a certificate or key that cannot be read.
    """
    if listen.certificate is None:
        if not ipaddress.ip_address(listen.host).is_loopback:
            fix = "give --cert and --key, or listen on 127.0.0.1"
            raise AssayError("tokens do not travel in the clear: plain HTTP is for loopback only", fix=fix)
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(listen.certificate, listen.key)
    except (OSError, ssl.SSLError) as error:
        fix = f"give files that can be read: {error.strerror}"
        if isinstance(error, ssl.SSLError):
            fix = "give PEM files: the certificate with its chain, and the key that belongs to it, without a passphrase"
        raise AssayError("no certificate and key can be read", where=str(listen.certificate), fix=fix) from None
    return context


def _open_listener(listen: ListenConfig) -> socket.socket:
    """Return a listening socket. Because it names its protocol, asyncio turns Nagle's algorithm off."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((listen.host, listen.port))
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise AssayError(f"cannot listen: {error.strerror}", where=f"{listen.host}:{listen.port}") from None
    return sock
