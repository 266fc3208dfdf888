"""What comes in: batches of agents at `POST /agent/v1/nodes/NODE/batches`, and alerts of Alertmanager.

Each node may deliver so many batches, bytes and ledger entries; one that has used them up must wait. Alertmanager's
webhook is `POST /alertmanager/v1/MONITORING`, for the Monitoring document of that name. In alertmanager.yml:
`webhook_configs: [{url: https://HOST:8443/alertmanager/v1/exporters, send_resolved: true, http_config: {authorization:
{credentials_file: TOKEN}}}]`. After a 5xx, Alertmanager sends the alerts again. Signals of other tools come in at
`POST /signals/v1/MONITORING`, by the same rules (`adapters/signals.py`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Literal

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from assay.act.ingest.alertmanager_alerts import AlertCounts, record_alerts
from assay.act.ingest.fault_recording import record_flood
from assay.adapters.prometheus.alerts import AlertmanagerPayload, map_alert, parse_alertmanager_payload
from assay.adapters.signals import parse_signals
from assay.model.errors import AssayError
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.specs.log_patterns import NUMBER
from assay.model.specs.monitoring import AlertMapping
from assay.model.specs.serving import NodeDeliveryLimits
from assay.tell.server.agent_tokens import RateLimiter, read_bearer_token
from assay.tell.server.app_state import AppState
from assay.tell.server.batch_writer import BatchRefused, parse_batch
from assay.tell.server.requests import drop_body, make_refusal, read_body

FLOOD_NOTE_S = 3600.0
MIB = 1024 * 1024
MAX_BODY_BYTES = 8 * 1024 * 1024
ALERTMANAGER_BURST, ALERTMANAGER_RATE = 200, 20.0


class DeliveryBudget:
    """The rates of every node, by the limits of the policy."""

    def __init__(self, limits: NodeDeliveryLimits) -> None:
        self.limits = limits
        self._batches = RateLimiter(limits.batches_at_once, limits.batches_per_second)
        self._bytes = RateLimiter(limits.mib_at_once * MIB, limits.mib_per_minute * MIB / 60)
        self._entries = RateLimiter(limits.entries_at_once, limits.entries_per_minute / 60)
        self._noted: dict[str, float] = {}

    def wait_s(self, node: str) -> float:
        """Count a batch and return 0, or return the seconds until the next one is allowed."""
        return self._batches.wait_s(node)

    def find_flood(self, node: str) -> tuple[float, str]:
        """Return how long a node must wait for what it has delivered, and why; 0 and "" if it need not."""
        if wait := self._bytes.overdrawn_s(node):
            return wait, f"delivers more than {self.limits.mib_per_minute:g} MiB a minute"
        if wait := self._entries.overdrawn_s(node):
            return wait, f"delivers faults for more than {self.limits.entries_per_minute:g} ledger entries a minute"
        return 0.0, ""

    def charge(self, node: str, size: int, entries: int) -> None:
        """Take the bytes and the ledger entries of a batch from what a node may deliver."""
        self._bytes.charge(node, size)
        if entries:
            self._entries.charge(node, entries)

    def is_news(self, node: str) -> bool:
        """Whether a node's flood has not been noted within the last hour; notes it."""
        now = time.monotonic()
        if now - self._noted.get(node, -FLOOD_NOTE_S) < FLOOD_NOTE_S:
            return False
        self._noted[node] = now
        return True


def agent_routes(state: AppState) -> Sequence[BaseRoute]:
    """Return the route of agents."""
    return [Route("/agent/v1/nodes/{node}/batches", AgentRoutes(state).post_batch, methods=["POST"])]


class AgentRoutes:
    """Receives batches from agents that present their node's token, as many as the policy lets a node deliver."""

    def __init__(self, state: AppState) -> None:
        self._state = state
        self._budget = DeliveryBudget(state.limits.node)
        self._authenticator = state.make_authenticator("this token is not this node's")
        self._words: list[str] = []
        self._words_catalog: FaultCatalog | None = None

    async def post_batch(self, request: Request) -> Response:
        """Receive one batch, and reply when it is written."""
        node = await self._authenticate(request)
        if self._budget.limits != self._state.limits.node:  # the policy's limits have changed
            self._budget = DeliveryBudget(self._state.limits.node)
        budget = self._budget
        if wait := budget.wait_s(node):
            raise make_refusal(429, "too many batches; wait a little", wait_s=wait)
        await self._refuse_flood(request, node, budget)
        body = await read_body(request, MAX_BODY_BYTES, self._state.limits.connections.body_seconds)
        budget.charge(node, len(body), 0)
        try:
            batch = parse_batch(body, node)
        except BatchRefused as error:
            raise make_refusal(422, str(error)) from None
        try:
            written = await self._state.intake.submit(batch)
        except AssayError as error:
            raise make_refusal(503, error.what, wait_s=5) from None
        budget.charge(node, 0, written.entries)
        words = self._kernel_words()
        reply = {"acked": written.acked, "entry": written.last_entry, "machine": True}
        return JSONResponse(reply | ({} if batch.agent.words == words else {"words": words}))

    async def _refuse_flood(self, request: Request, node: str, budget: DeliveryBudget) -> None:
        """Let a node wait that has delivered more than it may. The ledger says so once an hour."""
        wait, reason = budget.find_flood(node)
        if not wait:
            return
        if budget.is_news(node):
            self._state.report(f"{node} {reason}; it must wait")
            try:
                await run_in_threadpool(
                    record_flood, self._state.context, node, f"{reason}; the rest waits on the node"
                )
            except AssayError as error:
                self._state.report(str(error))
        await drop_body(request, MAX_BODY_BYTES, self._state.limits.connections.body_seconds)
        raise make_refusal(429, f"{node} {reason}; wait", wait_s=wait)

    def _kernel_words(self) -> list[str]:
        """Return the words of the current catalogue, which changes when the fleet is read again."""
        catalog = self._state.context.fleet.fault_catalog
        if catalog is not self._words_catalog:
            self._words, self._words_catalog = list_kernel_words(catalog), catalog
        return self._words

    async def _authenticate(self, request: Request) -> str:
        """Return the sender's node. The reply does not say why a token is refused; the refusal log does."""
        name = str(request.path_params["node"])
        node = self._state.context.fleet.nodes.get(name)
        refusal = await self._state.tokens.find_refusal(node, read_bearer_token(request))
        self._authenticator.settle(request, name, refusal)
        return name


def list_kernel_words(catalog: FaultCatalog) -> list[str]:
    """Return the literal texts by which an agent finds the catalogue's kernel lines; "" if a pattern has none."""
    patterns = [pattern for _, pattern in catalog.kernel_lines]
    begins = {max(head.split(NUMBER), key=len) for pattern in patterns for head in pattern.begins}
    words = begins | {word for pattern in patterns for word in pattern.holds}
    return sorted(words | ({""} if any(not (pattern.begins or pattern.holds) for pattern in patterns) else set()))


def alert_routes(state: AppState) -> Sequence[BaseRoute]:
    """Return the routes of alerts and of signals."""
    doors = {"alertmanager": AlertDoor(state, "alerts"), "signals": AlertDoor(state, "signals")}
    return [Route(f"/{name}/v1/{{monitoring}}", door.post_alerts, methods=["POST"]) for name, door in doors.items()]


class AlertDoor:
    """Receives alerts or signals from senders that present the token of this section of their Monitoring document."""

    def __init__(self, state: AppState, section: Literal["alerts", "signals"]) -> None:
        self._state, self._section = state, section
        self._call_limit = RateLimiter(ALERTMANAGER_BURST, ALERTMANAGER_RATE)
        self._authenticator = state.make_authenticator("this token is not that of the sender")
        self._record_lock = threading.Lock()
        self._budget = DeliveryBudget(state.limits.node)
        self._unnoted = 0

    async def post_alerts(self, request: Request) -> Response:
        """Receive the alerts of one call, and reply when they are written."""
        name, alerts = await self._authenticate(request)
        if wait := self._call_limit.wait_s(name):
            raise make_refusal(429, "too many calls; wait a little", wait_s=wait)
        wait, reason = self._budget.find_flood(name)
        if wait:  # Alertmanager sends again after a 503, and not after a 429
            await drop_body(request, MAX_BODY_BYTES, self._state.limits.connections.body_seconds)
            raise make_refusal(503, f"Monitoring {name} {reason}; wait", wait_s=wait)
        body = await read_body(request, MAX_BODY_BYTES, self._state.limits.connections.body_seconds)
        try:
            payload = self._parse(body)
        except AssayError as error:
            raise make_refusal(422, error.what) from None
        try:
            counts = await run_in_threadpool(self._record, payload, alerts)
        except AssayError as error:
            raise make_refusal(503, error.what, wait_s=5) from None
        self._budget.charge(name, len(body), counts.entries)
        return JSONResponse({"taken": counts.total, "unmapped": counts.unmapped, "elsewhere": counts.unplaced})

    def _parse(self, body: bytes) -> AlertmanagerPayload:
        if self._section == "alerts":
            return parse_alertmanager_payload(body)
        signals = parse_signals(body, self._state.context.clock.now())
        return AlertmanagerPayload(version="4", alerts=[*signals])

    def _record(self, payload: AlertmanagerPayload, alerts: AlertMapping) -> AlertCounts:
        if payload.truncatedAlerts:
            missing = f"Alertmanager left out {payload.truncatedAlerts} alerts"
            self._state.report(f"{missing}: raise max_alerts of its webhook")
        with self._record_lock:
            context = self._state.context
            weight = 1 if self._section == "alerts" else 0
            mapped = [map_alert(alert, alerts, context.fleet.nodes, weight) for alert in payload.alerts]
            counts = record_alerts(context, mapped, self._state.report, self._unnoted)
            self._unnoted = counts.unnoted
            return counts

    async def _authenticate(self, request: Request) -> tuple[str, AlertMapping]:
        """Return the Monitoring that is addressed, and its alert mapping. A refusal does not say why."""
        name = str(request.path_params["monitoring"])
        monitoring = self._state.context.fleet.monitorings.get(name)
        alerts = getattr(monitoring, self._section, None)
        declared = [alerts.token] if alerts and alerts.token else []
        place, shown = f"Monitoring {name} {self._section}.token", read_bearer_token(request)
        is_good = await self._state.tokens.is_token_of(place, declared, shown)
        refusal = "" if is_good else "not the token of the Monitoring" if alerts else "no such Monitoring takes alerts"
        self._authenticator.settle(request, f"Monitoring {name}", refusal)
        assert alerts is not None, "everything else is refused"
        return name, alerts
