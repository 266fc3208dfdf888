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

from assay.controller.looking.alarms import Alarms, Taken
from assay.model.errors import Trouble
from assay.model.monitoring import Alerts
from assay.observe.alerts import Payload, payload_of, placed
from assay.observe.references import secret
from assay.web.rate import Rate
from assay.web.replies import body_of, refusal
from assay.web.room import Room
from assay.web.tokens import bearer, digest_of

LARGEST = 8 * 1024 * 1024
AT_ONCE, PER_SECOND = 200, 20.0
STRANGE_AT_ONCE, STRANGE_PER_SECOND = 20, 1.0


def routes(room: Room) -> Sequence[BaseRoute]:
    """Return the webhook's route."""
    return [Route("/alertmanager/v1/{monitoring}", Webhook(room).alerts, methods=["POST"])]


class Webhook:
    """Takes alerts of whoever shows the token that their Monitoring names."""

    def __init__(self, room: Room) -> None:
        self._room, self._alarms = room, Alarms(room.desk, room.tell)
        self._rate, self._strange = Rate(AT_ONCE, PER_SECOND), Rate(STRANGE_AT_ONCE, STRANGE_PER_SECOND)
        self._one = threading.Lock()

    async def alerts(self, request: Request) -> Response:
        """Take the alerts of one call, and answer when they are written down."""
        name, alerts = await self._whose(request)
        if wait := self._rate.wait_s(name):
            raise refusal(429, "too many calls; wait a little", wait_s=wait)
        body = await body_of(request, LARGEST)
        try:
            payload = payload_of(body)
        except Trouble as trouble:
            raise refusal(422, trouble.what) from None
        try:
            taken = await run_in_threadpool(self._take, payload, alerts)
        except Trouble as trouble:
            raise refusal(503, trouble.what, wait_s=5) from None
        return JSONResponse(taken._asdict())

    def _take(self, payload: Payload, alerts: Alerts) -> Taken:
        if payload.truncatedAlerts:
            self._room.tell(f"Alertmanager left out {payload.truncatedAlerts} alerts: raise max_alerts of its webhook")
        with self._one:
            return self._alarms.take([placed(one, alerts, self._room.desk.fleet.nodes) for one in payload.alerts])

    async def _whose(self, request: Request) -> tuple[str, Alerts]:
        """Return the Monitoring that is spoken to, and its alerts. Why a token is refused is not told apart."""
        name = str(request.path_params["monitoring"])
        found = self._room.desk.fleet.monitorings.get(name)
        if found and found.alerts:
            wanted = await run_in_threadpool(self._digest, name, found.alerts)
            given = hashlib.sha256(bearer(request).encode()).hexdigest()
            if wanted and hmac.compare_digest(given, wanted):
                return name, found.alerts
        if wait := self._strange.wait_s(request.client.host if request.client else ""):
            raise refusal(429, "too many refusals; wait a little", wait_s=wait)
        raise refusal(401, "this token is not Alertmanager's")

    def _digest(self, name: str, alerts: Alerts) -> str:
        if alerts.token is None:
            return ""
        try:
            return alerts.token.sha256 or digest_of(secret(alerts.token, self._room.desk.fleet.root))
        except Trouble as trouble:
            self._room.tell(f"Monitoring {name} alerts.token: {trouble.what}")
            return ""
