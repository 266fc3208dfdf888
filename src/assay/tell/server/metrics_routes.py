"""`GET /metrics`: assay's own metrics. One scrape is computed at a time, in a thread beside the event loop.

This machine needs no token, unless a proxy passes the request on. Others present a `metrics_token` of a Monitoring.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
from collections.abc import Callable, Sequence

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from assay.act.loop.context import ControllerContext
from assay.model.errors import AssayError
from assay.tell.metrics.fleet_metrics import FleetMetrics, format_metrics
from assay.tell.server.app_state import AppState
from assay.tell.server.request_bodies_and_refusals import make_refusal
from assay.tell.server.tokens_and_rate_limits import read_bearer_token, read_expected_digest

MAX_WAITING = 8
"""Scrapes that may wait for their turn; more are refused."""
PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-real-ip")
NOT_PERMITTED = "these metrics need the token of a Monitoring"

Settle = Callable[[Request, str], None]
"""Notes a good request (""), or raises a refusal with a reason that only the refusal log shows."""


def routes(state: AppState) -> Sequence[BaseRoute]:
    """Return the route of `assay serve`."""
    authenticator = state.make_authenticator(NOT_PERMITTED)
    endpoint = MetricsEndpoint(
        lambda: state.context, state.report, lambda request, why: authenticator.settle(request, "Prometheus", why)
    )
    return [Route("/metrics", endpoint.get_metrics)]


class MetricsEndpoint:
    """Gives the metrics to who may read them; `current` returns the controller's context."""

    def __init__(self, current: Callable[[], ControllerContext], report: Callable[[str], None], settle: Settle) -> None:
        self._current, self._report, self._settle = current, report, settle
        self._metrics = FleetMetrics(current, report)
        self._turn, self._waiting = asyncio.Lock(), 0

    async def get_metrics(self, request: Request) -> Response:
        """Return the metrics in Prometheus' text format."""
        self._settle(request, await self._find_refusal(request))
        if self._waiting >= MAX_WAITING:
            raise make_refusal(503, "too many scrapes at once; wait a little", wait_s=5)
        self._waiting += 1
        try:
            async with self._turn:
                text = await run_in_threadpool(format_metrics, self._metrics)
        except AssayError as error:
            self._report(f"the metrics cannot be collected: {error}")
            raise make_refusal(503, error.what) from None
        finally:
            self._waiting -= 1
        return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)

    async def _find_refusal(self, request: Request) -> str:
        """Return why a request may not read the metrics, "" if it may."""
        if is_from_this_machine(request):
            return ""
        presented = hashlib.sha256(read_bearer_token(request).encode()).hexdigest()
        expected = await run_in_threadpool(self._read_digests)
        is_good = any(hmac.compare_digest(presented, digest) for digest in expected if digest)
        return "" if is_good else "not a metrics_token of a Monitoring" if expected else "no Monitoring has one"

    def _read_digests(self) -> list[str]:
        """Return the digests of all tokens; one that cannot be read is reported, and fits nothing."""
        fleet, digests = self._current().fleet, list[str]()
        for name, monitoring in fleet.monitorings.items():
            for reference in monitoring.metrics_token:
                try:
                    digests.append(read_expected_digest(reference, fleet.root))
                except AssayError as error:
                    self._report(f"Monitoring {name} metrics_token: {error.what}")
        return digests


def is_from_this_machine(request: Request) -> bool:
    """Whether a request comes from a loopback address, and no proxy says that it passes it on."""
    if request.client is None or any(name in request.headers for name in PROXY_HEADERS):
        return False
    try:
        return ipaddress.ip_address(request.client.host).is_loopback
    except ValueError:
        return False
