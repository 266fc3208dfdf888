"""`GET /metrics`, `/healthz` and `/readyz`, by the server, or by a small one beside `assay reconcile`.

`/healthz` says whether the process works, `/readyz` whether all that it needs is there. One scrape is computed at a
time, in a thread beside the event loop. A reader presents a `metrics_token` of a Monitoring, or the token in the file
`reader-token` of assay's home. An address proves nothing.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Thread

import uvicorn
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from assay.act.loop.context import ControllerContext
from assay.model.errors import AssayError
from assay.model.specs.credential_reference import TokenReference
from assay.tell.metrics.fleet_metrics import FleetMetrics, format_metrics
from assay.tell.server.agent_tokens import READER_TOKEN, AgentTokens, find_reader_token, read_bearer_token
from assay.tell.server.app_state import AppState
from assay.tell.server.requests import make_refusal, reply_refusal
from assay.tell.server.visitor_shares import VisitorShares

NOT_PERMITTED = "these metrics need a token: docs/metrics.md says which"

Settle = Callable[[Request, str], None]
"""Notes a good request (""), or raises a refusal with a reason that only the refusal log shows."""
MAX_CONNECTIONS = 32
IDLE_S = 75


def routes(state: AppState) -> Sequence[BaseRoute]:
    """Return the route of `assay serve`."""
    authenticator = state.make_authenticator(NOT_PERMITTED)
    endpoint = MetricsEndpoint(
        lambda: state.context,
        state.report,
        lambda request, refusal: authenticator.settle(request, "Prometheus", refusal),
    )
    return [Route("/metrics", endpoint.get_metrics)]


class MetricsEndpoint:
    """Gives the metrics to who may read them; `current` returns the controller's context."""

    def __init__(self, current: Callable[[], ControllerContext], report: Callable[[str], None], settle: Settle) -> None:
        self._current, self._report, self._settle = current, report, settle
        self._metrics = FleetMetrics(current, report)
        self._shares, self._tokens = VisitorShares(), AgentTokens(current().fleet.root, report)

    async def get_metrics(self, request: Request) -> Response:
        """Return the metrics in Prometheus' text format."""
        self._settle(request, await self._find_refusal(request))
        try:
            async with self._shares.take_turn("Prometheus"):
                text = await run_in_threadpool(format_metrics, self._metrics)
        except AssayError as error:
            self._report(f"the metrics cannot be collected: {error}")
            raise make_refusal(503, error.what) from None
        return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)

    async def _find_refusal(self, request: Request) -> str:
        """Return why a request may not read the metrics, "" if it may."""
        context, shown = self._current(), read_bearer_token(request)
        reader = TokenReference(file=str(find_reader_token(context.home).absolute()))
        monitorings = context.fleet.monitorings.items()
        declared = {f"Monitoring {name} metrics_token": each.metrics_token for name, each in monitorings}
        for name, references in {READER_TOKEN: [reader], **declared}.items():
            if shown and await self._tokens.is_token_of(name, references, shown):
                return ""
        return "neither a metrics_token of a Monitoring nor the reader-token"


def start_metrics_server(
    address: str, current: Callable[[], ControllerContext], is_usable: Callable[[], bool], report: Callable[[str], None]
) -> str:
    """Serve /metrics, /healthz and /readyz at HOST:PORT until the process ends; return the URL of the metrics.

    `is_usable` says whether the fleet's files are good. Raises AssayError if it cannot listen.
    """
    listener = open_listener(*parse_address(address))
    find_reader_token(current().home)
    config = uvicorn.Config(
        build_metrics_app(current, is_usable, report),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=IDLE_S,
    )
    Thread(target=lambda: uvicorn.Server(config).run(sockets=[listener]), name="metrics", daemon=True).start()
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/metrics"


def parse_address(address: str) -> tuple[str, int]:
    """Return host and port of `127.0.0.1:9464` or `[::1]:9464`. Raises AssayError for another text."""
    host, _, port = address.rpartition(":")
    try:
        ip_address = str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        ip_address = ""
    if not ip_address or not port.isdecimal() or int(port) > 65535:
        fix = "write an IP address of this machine and a port, such as 127.0.0.1:9464"
        raise AssayError(f"{address!r} is no address to listen on", fix=fix)
    return ip_address, int(port)


def build_metrics_app(
    current: Callable[[], ControllerContext], is_usable: Callable[[], bool], report: Callable[[str], None]
) -> Starlette:
    """Return the application of `start_metrics_server`."""

    def find_missing() -> Iterator[tuple[str, str]]:
        if not is_usable():
            yield "fleet", FLEET_IN_ERROR
        yield from find_ledger_error(current())

    endpoint = MetricsEndpoint(current, report, _refuse)
    routes = [Route("/metrics", endpoint.get_metrics), *_make_health_routes(lambda: (), find_missing)]
    return Starlette(routes=routes, exception_handlers={HTTPException: reply_refusal, Exception: reply_refusal})


def _refuse(_request: Request, why_refused: str) -> None:
    if why_refused:
        raise make_refusal(401, NOT_PERMITTED)


def open_listener(host: str, port: int, backlog: int = MAX_CONNECTIONS) -> socket.socket:
    """Return a listening socket. Because it names its protocol, asyncio turns Nagle's algorithm off."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
        sock.listen(backlog)
    except OSError as error:
        sock.close()
        raise AssayError(f"cannot listen: {error.strerror}", where=f"{host}:{port}") from None
    return sock


FLEET_IN_ERROR = "its files are in error; this process works with the fleet that it read before"


def health_routes(state: AppState) -> Sequence[BaseRoute]:
    """Return the routes of `assay serve`. `/healthz` is 200 while batches can be written, else 503."""

    def find_missing() -> Iterator[tuple[str, str]]:
        yield from _find_ended(state)
        if not state.current.is_usable:
            yield "fleet", FLEET_IN_ERROR
        yield from find_ledger_error(state.context)

    return _make_health_routes(lambda: _find_ended(state), find_missing)


def _find_ended(state: AppState) -> Iterator[tuple[str, str]]:
    if not state.intake.alive():
        yield "intake", "its thread has ended"


def find_ledger_error(context: ControllerContext) -> Iterator[tuple[str, str]]:
    """Yield why the ledger cannot be read, if it cannot."""
    try:
        context.ledger.head()
    except AssayError as error:
        yield "ledger", error.what


Problems = Callable[[], Iterable[tuple[str, str]]]


def _make_health_routes(find_ended: Problems, find_missing: Problems) -> list[BaseRoute]:
    """Return routes that reply 200, or 503 with what is missing; a thread finds that out, since a ledger may hang."""

    def reply(missing: dict[str, str]) -> Response:
        return JSONResponse({"ok": not missing, **missing}, 503 if missing else 200)

    async def get_health(_request: Request) -> Response:
        return reply(dict(find_ended()))

    async def get_readiness(_request: Request) -> Response:
        return reply(await run_in_threadpool(lambda: dict(find_missing())))

    return [Route("/healthz", get_health), Route("/readyz", get_readiness)]
