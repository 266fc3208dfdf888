"""A small server of metrics beside a process that has no other, such as `assay reconcile`, in a thread of its own."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterator
from threading import Thread

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from assay.act.loop.context import ControllerContext
from assay.model.errors import AssayError
from assay.tell.server.health_routes import FLEET_IN_ERROR, find_ledger_error, reply_readiness
from assay.tell.server.metrics_routes import NOT_PERMITTED, MetricsEndpoint
from assay.tell.server.request_bodies_and_refusals import make_refusal, reply_internal_error, reply_refusal

MAX_CONNECTIONS = 32
IDLE_S = 75


def start_metrics_server(
    address: str, current: Callable[[], ControllerContext], is_usable: Callable[[], bool], report: Callable[[str], None]
) -> str:
    """Serve /metrics, /healthz and /readyz at HOST:PORT until the process ends; return the URL of the metrics.

    `is_usable` says whether the fleet's files are good. Raises AssayError if it cannot listen.
    """
    listener = _open_listener(*parse_address(address))
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
        return str(ipaddress.ip_address(host.strip("[]"))), _parse_port(port)
    except ValueError:
        fix = "write an IP address of this machine and a port, such as 127.0.0.1:9464"
        raise AssayError(f"{address!r} is no address to listen on", fix=fix) from None


def _parse_port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise ValueError(text)
    return int(text)


def build_metrics_app(
    current: Callable[[], ControllerContext], is_usable: Callable[[], bool], report: Callable[[str], None]
) -> Starlette:
    """Return the application of `start_metrics_server`."""

    def find_missing() -> Iterator[tuple[str, str]]:
        if not is_usable():
            yield "fleet", FLEET_IN_ERROR
        yield from find_ledger_error(current())

    async def get_readiness(_request: Request) -> Response:
        return await reply_readiness(find_missing)

    async def get_health(_request: Request) -> Response:
        return JSONResponse({"ok": True})

    endpoint = MetricsEndpoint(current, report, _refuse)
    routes = [
        Route("/metrics", endpoint.get_metrics),
        Route("/healthz", get_health),
        Route("/readyz", get_readiness),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: reply_refusal, Exception: reply_internal_error})


def _refuse(_request: Request, why_refused: str) -> None:
    if why_refused:
        raise make_refusal(401, NOT_PERMITTED)


def _open_listener(host: str, port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
        sock.listen()
    except OSError as error:
        sock.close()
        raise AssayError(f"cannot listen: {error.strerror}", where=f"{host}:{port}") from None
    return sock
