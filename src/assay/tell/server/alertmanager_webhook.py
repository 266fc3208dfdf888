"""`POST /alertmanager/v1/MONITORING`: Alertmanager's webhook, for the Monitoring document of that name.

In alertmanager.yml: `webhook_configs: [{url: https://HOST:8443/alertmanager/v1/exporters, send_resolved: true,
http_config: {authorization: {credentials_file: TOKEN}}}]`. After a 5xx, Alertmanager sends the alerts again.
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

from assay.act.ingest.alertmanager_alerts import AlertCounts, record_alerts
from assay.adapters.prometheus.alert_mapping import AlertmanagerPayload, map_alert, parse_alertmanager_payload
from assay.model.errors import AssayError
from assay.model.specs.monitoring import AlertMapping
from assay.tell.server.app_state import AppState
from assay.tell.server.request_bodies_and_refusals import make_refusal, read_body
from assay.tell.server.tokens_and_rate_limits import RateLimiter, read_bearer_token, read_expected_digest

MAX_BODY_BYTES = 8 * 1024 * 1024
ALERTMANAGER_BURST, ALERTMANAGER_RATE = 200, 20.0


def routes(state: AppState) -> Sequence[BaseRoute]:
    """Return the webhook's route."""
    return [Route("/alertmanager/v1/{monitoring}", AlertmanagerWebhook(state).post_alerts, methods=["POST"])]


class AlertmanagerWebhook:
    """Receives alerts from senders that present the token of their Monitoring document."""

    def __init__(self, state: AppState) -> None:
        self._state = state
        self._call_limit = RateLimiter(ALERTMANAGER_BURST, ALERTMANAGER_RATE)
        self._authenticator = state.make_authenticator("this token is not Alertmanager's")
        self._record_lock = threading.Lock()

    async def post_alerts(self, request: Request) -> Response:
        """Receive the alerts of one call, and reply when they are written."""
        name, alerts = await self._authenticate(request)
        if wait := self._call_limit.wait_s(name):
            raise make_refusal(429, "too many calls; wait a little", wait_s=wait)
        body = await read_body(request, MAX_BODY_BYTES, self._state.limits.connections.body_seconds)
        try:
            payload = parse_alertmanager_payload(body)
        except AssayError as error:
            raise make_refusal(422, error.what) from None
        try:
            counts = await run_in_threadpool(self._record, payload, alerts)
        except AssayError as error:
            raise make_refusal(503, error.what, wait_s=5) from None
        return JSONResponse({"taken": counts.total, "unmapped": counts.unmapped, "elsewhere": counts.unplaced})

    def _record(self, payload: AlertmanagerPayload, alerts: AlertMapping) -> AlertCounts:
        if payload.truncatedAlerts:
            missing = f"Alertmanager left out {payload.truncatedAlerts} alerts"
            self._state.report(f"{missing}: raise max_alerts of its webhook")
        with self._record_lock:
            context = self._state.context
            mapped = [map_alert(alert, alerts, context.fleet.nodes) for alert in payload.alerts]
            return record_alerts(context, mapped, self._state.report)

    async def _authenticate(self, request: Request) -> tuple[str, AlertMapping]:
        """Return the Monitoring that is addressed, and its alert mapping. A refusal does not say why."""
        name = str(request.path_params["monitoring"])
        found = self._state.context.fleet.monitorings.get(name)
        alerts = found.alerts if found else None
        expected = await run_in_threadpool(self._read_digest, name, alerts) if alerts else ""
        presented = hashlib.sha256(read_bearer_token(request).encode()).hexdigest()
        is_good = bool(expected) and hmac.compare_digest(presented, expected)
        refusal = "" if is_good else "not the token of the Monitoring" if alerts else "no such Monitoring takes alerts"
        self._authenticator.settle(request, f"Monitoring {name}", refusal)
        assert alerts is not None, "everything else is refused"
        return name, alerts

    def _read_digest(self, name: str, alerts: AlertMapping) -> str:
        if alerts.token is None:
            return ""
        try:
            return read_expected_digest(alerts.token, self._state.context.fleet.root)
        except AssayError as error:
            self._state.report(f"Monitoring {name} alerts.token: {error.what}")
            return ""
