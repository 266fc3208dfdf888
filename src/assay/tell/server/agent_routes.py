"""`POST /agent/v1/nodes/NODE/batches`: receives the batches of a node's agent (see assay.node.agent.batch_sender)."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from assay.act.ingest.fault_recording import record_flood
from assay.model.errors import AssayError
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.specs.kernel_log_and_xid_patterns import NUMBER
from assay.tell.server.app_state import AppState
from assay.tell.server.batch_validation import BatchRefused, parse_batch
from assay.tell.server.delivery_budget import DeliveryBudget
from assay.tell.server.request_bodies_and_refusals import drop_body, make_refusal, read_body
from assay.tell.server.tokens_and_rate_limits import read_bearer_token

MAX_BODY_BYTES = 8 * 1024 * 1024


def routes(state: AppState) -> Sequence[BaseRoute]:
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
        budget = self._current_budget()
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
        reply = {"acked": written.acked, "entry": written.last_entry}
        return JSONResponse(reply | ({} if batch.agent.words == words else {"words": words}))

    def _current_budget(self) -> DeliveryBudget:
        """Return the budget, a new one if the policy's limits have changed."""
        if self._budget.limits != self._state.limits.node:
            self._budget = DeliveryBudget(self._state.limits.node)
        return self._budget

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
    patterns = [fault.kernel_log_pattern for fault in catalog.classes.values() if fault.kernel_log_pattern]
    begins = {max(head.split(NUMBER), key=len) for pattern in patterns for head in pattern.begins}
    words = begins | {word for pattern in patterns for word in pattern.holds}
    return sorted(words | ({""} if any(not (pattern.begins or pattern.holds) for pattern in patterns) else set()))
