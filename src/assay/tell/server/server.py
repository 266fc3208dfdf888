"""Serves over HTTPS until SIGTERM or SIGINT: the routes, and what runs beside them as long as the server does.

Each kind of route is a module with `routes(state)`. Add a new one to `ROUTE_BUILDERS`.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import signal
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from types import FrameType

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute

from assay.act.loop.enrollment import enroll_nodes
from assay.act.loop.fleet_reload import CurrentContext
from assay.model.gc_pause import keep_objects
from assay.model.service_manager import ALIVE, READY, STOPPING, notify_reloading, notify_service_manager
from assay.tell.api import conditional_answers, machine_reports, order_routes
from assay.tell.pages import page_routes
from assay.tell.pages.page_frame import reply_refusal_to_reader
from assay.tell.server import identity_routes, intake_routes, login_routes, metrics_routes, start_files
from assay.tell.server.agent_tokens import AgentTokens
from assay.tell.server.app_state import AppState
from assay.tell.server.batch_writer import BatchWriter
from assay.tell.server.requests import RefusalLog
from assay.tell.server.server_certificate import ListenConfig, ServerCertificate

SWEEP_S = 0.5
CERTIFICATE_LOOK_S = 10.0


RouteBuilders = Sequence[Callable[[AppState], Sequence[BaseRoute]]]
BOOT_ROUTE_BUILDERS: RouteBuilders = (
    metrics_routes.health_routes,
    start_files.script_routes,
    start_files.image_routes,
    identity_routes.routes,
)
"""What machines that boot need. Secrets are taken and given by HTTPS alone."""
ROUTE_BUILDERS: RouteBuilders = (
    *BOOT_ROUTE_BUILDERS,
    metrics_routes.routes,
    intake_routes.agent_routes,
    intake_routes.alert_routes,
    page_routes.routes,
    login_routes.routes,
    conditional_answers.routes,
    order_routes.routes,
    machine_reports.routes,
)
SHUTDOWN_GRACE_S = 10
BACKLOG = 2048
MAX_HEADER_BYTES = 16 * 1024
SPARE_FILES = 256
"""Files that the server needs beside those of its connections."""
REFUSALS_FILE = "refusals.jsonl"
ONLY_RECORDS = "records faults, and acts on nothing: `assay reconcile` decides, acts, and starts the rollouts of merges"
ONLY_BOOTS = "answers machines that boot, with scripts, images and first data; secrets by HTTPS alone"


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
        routes=[route for build in builders for route in build(state)],
        lifespan=run_beside,
        exception_handlers={HTTPException: reply_refusal_to_reader, Exception: reply_refusal_to_reader},
    )


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


def serve(current: CurrentContext, listen: ListenConfig, report: Callable[[str], None]) -> None:
    """Serve a fleet until SIGTERM; changes of its files take effect at the next batch. `report` shows a line to people.

    Raises AssayError if it cannot listen, or the certificate cannot be read.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the application handles it
    certificate = ServerCertificate(listen, report)
    with metrics_routes.open_listener(listen.host, listen.port, BACKLOG) as listener:
        enroll_nodes(current.context)
        keep_objects()  # fleet and states are long-lived: collections that scan them would delay every batch
        tokens, intake = AgentTokens(current.context.fleet.root, report), BatchWriter(current, report)
        refusals = RefusalLog(current.context.home / REFUSALS_FILE, report)
        state = AppState(current, tokens, intake, refusals, report)
        scheme, (host, port) = "https" if certificate.context else "http", listener.getsockname()[:2]
        report(f"listens on {scheme}://{f'[{host}]' if ':' in host else host}:{port}")
        report(ONLY_BOOTS if listen.boot_only else ONLY_RECORDS)
        token = state.reader_token
        if current.context.policy.access is None and not listen.boot_only:
            undeclared = "nobody is declared who may read (`access` of the policy)"
            report(f"{undeclared}: log in with the token in {token}")
        builders = BOOT_ROUTE_BUILDERS if listen.boot_only else ROUTE_BUILDERS
        app = build_app(state, certificate, builders)
        with contextlib.suppress(KeyboardInterrupt):
            _EndingServer(_make_config(state, app, certificate), state).run(sockets=[listener])


class _EndingServer(uvicorn.Server):
    """uvicorn's server, which tells its streams to end before it waits for them."""

    def __init__(self, config: uvicorn.Config, state: AppState) -> None:
        super().__init__(config)
        self._ending = state.ending

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to serve, and say so."""
        await super().startup(sockets=sockets)
        notify_service_manager(READY)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle SIGTERM and SIGINT."""
        notify_service_manager(STOPPING)
        self._ending.set()
        super().handle_exit(sig, frame)


def _make_config(state: AppState, app: Starlette, certificate: ServerCertificate) -> uvicorn.Config:
    """Return uvicorn's configuration. Deadlines and limits of addresses: deploy/nginx.conf."""
    tls, wanted = certificate.context, state.limits.connections.total
    if (most := raise_file_limit(wanted)) < wanted:
        state.report(f"keeps at most {most} connections of {wanted}: this process may open no more files (ulimit -Hn)")
    return uvicorn.Config(
        app,
        http="h11",  # the one that limits the header
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="error",  # a stranger's nonsense fills no log
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=most,
        backlog=BACKLOG,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        timeout_keep_alive=max(1, int(state.limits.connections.idle_seconds)),
        timeout_graceful_shutdown=SHUTDOWN_GRACE_S,
        ssl_context_factory=(lambda *_: tls) if tls else None,
    )


def raise_file_limit(connections: int) -> int:
    """Let this process have a file for each connection where it may; return how many connections it can have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return connections if soft == resource.RLIM_INFINITY else max(16, min(connections, soft - SPARE_FILES))
