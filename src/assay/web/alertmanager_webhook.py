"""`POST /alertmanager/v1/MONITORING`: Alertmanager's webhook, for the Monitoring document of that name.

In alertmanager.yml: `webhook_configs: [{url: https://HOST:8443/alertmanager/v1/exporters, send_resolved: true,
http_config: {authorization: {credentials_file: TOKEN}}}]`. An answer of 5xx makes Alertmanager send again.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections.abc import Sequence

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from assay.controller.ingest.alertmanager_alerts import AlertCounts, record_alerts
from assay.fleet.secret_lookup import read_secret
from assay.model.errors import AssayError
from assay.model.specs.monitoring import AlertMapping
from assay.observe.prometheus.alert_mapping import AlertmanagerPayload, map_alert, parse_alertmanager_payload
from assay.web.app_state import AppState
from assay.web.http_replies import make_refusal, read_body
from assay.web.tokens_and_rate_limits import RateLimiter, read_bearer_token, token_digest

MAX_BODY_BYTES = 8 * 1024 * 1024
ALERTMANAGER_BURST, ALERTMANAGER_RATE = 200, 20.0
UNAUTHORIZED_BURST, UNAUTHORIZED_RATE = 20, 1.0


def routes(room: AppState) -> Sequence[BaseRoute]:
    """Return the webhook's route."""
    return [Route("/alertmanager/v1/{monitoring}", AlertmanagerWebhook(room).post_alerts, methods=["POST"])]


class AlertmanagerWebhook:
    """Takes alerts of whoever shows the token that their Monitoring names."""

    def __init__(self, room: AppState) -> None:
        self._room = room
        self._rate, self._strange = (
            RateLimiter(ALERTMANAGER_BURST, ALERTMANAGER_RATE),
            RateLimiter(UNAUTHORIZED_BURST, UNAUTHORIZED_RATE),
        )
        self._one = threading.Lock()

    async def post_alerts(self, request: Request) -> Response:
        """Take the alerts of one call, and answer when they are written down."""
        name, alerts = await self._whose(request)
        if wait := self._rate.wait_s(name):
            raise make_refusal(429, "too many calls; wait a little", wait_s=wait)
        body = await read_body(request, MAX_BODY_BYTES)
        try:
            payload = parse_alertmanager_payload(body)
        except AssayError as trouble:
            raise make_refusal(422, trouble.what) from None
        try:
            taken = await run_in_threadpool(self._take, payload, alerts)
        except AssayError as trouble:
            raise make_refusal(503, trouble.what, wait_s=5) from None
        return JSONResponse({"taken": taken.total, "unmapped": taken.unmapped, "elsewhere": taken.unplaced})

    def _take(self, payload: AlertmanagerPayload, alerts: AlertMapping) -> AlertCounts:
        if payload.truncatedAlerts:
            self._room.tell(f"Alertmanager left out {payload.truncatedAlerts} alerts: raise max_alerts of its webhook")
        with self._one:
            context = self._room.context
            mapped = [map_alert(one, alerts, context.fleet.nodes) for one in payload.alerts]
            return record_alerts(context, mapped, self._room.tell)

    async def _whose(self, request: Request) -> tuple[str, AlertMapping]:
        """Return the Monitoring that is spoken to, and its alerts. Why a token is refused is not told apart."""
        name = str(request.path_params["monitoring"])
        found = self._room.context.fleet.monitorings.get(name)
        if found and found.alerts:
            wanted = await run_in_threadpool(self._digest, name, found.alerts)
            given = hashlib.sha256(read_bearer_token(request).encode()).hexdigest()
            if wanted and hmac.compare_digest(given, wanted):
                return name, found.alerts
        if wait := self._strange.wait_s(request.client.host if request.client else ""):
            raise make_refusal(429, "too many refusals; wait a little", wait_s=wait)
        raise make_refusal(401, "this token is not Alertmanager's")

    def _digest(self, name: str, alerts: AlertMapping) -> str:
        if alerts.token is None:
            return ""
        try:
            return alerts.token.sha256 or token_digest(read_secret(alerts.token, self._room.context.fleet.root))
        except AssayError as trouble:
            self._room.tell(f"Monitoring {name} alerts.token: {trouble.what}")
            return ""
