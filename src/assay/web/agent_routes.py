"""`POST /agent/v1/nodes/NODE/batches`: receives the batches of a node's agent (see assay.agent.batch_sender)."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from assay.model.errors import AssayError
from assay.model.specs.fault_catalog import FaultCatalog
from assay.web.app_state import AppState
from assay.web.batch_validation import BatchRefused, parse_batch
from assay.web.http_replies import make_refusal, read_body
from assay.web.tokens_and_rate_limits import RateLimiter, read_bearer_token

MAX_BODY_BYTES = 8 * 1024 * 1024
AGENT_BURST, AGENT_RATE = 200, 40.0
UNAUTHORIZED_BURST, UNAUTHORIZED_RATE = 20, 1.0


def routes(state: AppState) -> Sequence[BaseRoute]:
    """Return the route of agents."""
    return [Route("/agent/v1/nodes/{node}/batches", AgentRoutes(state).post_batch, methods=["POST"])]


class AgentRoutes:
    """Receives batches from agents that present their node's token, limited in rate per node."""

    def __init__(self, state: AppState) -> None:
        self._state = state
        self._node_limit = RateLimiter(AGENT_BURST, AGENT_RATE)
        self._refusal_limit = RateLimiter(UNAUTHORIZED_BURST, UNAUTHORIZED_RATE)
        self._words: list[str] = []
        self._words_catalog: FaultCatalog | None = None

    async def post_batch(self, request: Request) -> Response:
        """Receive one batch, and reply when it is written."""
        node = await self._authenticate(request)
        if wait := self._node_limit.wait_s(node):
            raise make_refusal(429, "too many batches; wait a little", wait_s=wait)
        body = await read_body(request, MAX_BODY_BYTES)
        try:
            batch = parse_batch(body, node)
        except BatchRefused as error:
            raise make_refusal(422, str(error)) from None
        try:
            acked = await self._state.intake.submit(batch)
        except AssayError as error:
            raise make_refusal(503, error.what, wait_s=5) from None
        words = self._kernel_words()
        return JSONResponse({"acked": acked} | ({} if batch.agent.words == words else {"words": words}))

    def _kernel_words(self) -> list[str]:
        """Return the words of the current catalogue, which changes when the fleet is read again."""
        catalog = self._state.context.fleet.fault_catalog
        if catalog is not self._words_catalog:
            self._words, self._words_catalog = list_kernel_words(catalog), catalog
        return self._words

    async def _authenticate(self, request: Request) -> str:
        """Return the sender's node. The reply does not say why a token is refused; repeated failures must wait."""
        name = str(request.path_params["node"])
        node = self._state.context.fleet.nodes.get(name)
        if await self._state.tokens.is_valid_for(node, read_bearer_token(request)):
            return name
        if wait := self._refusal_limit.wait_s(request.client.host if request.client else ""):
            raise make_refusal(429, "too many refusals; wait a little", wait_s=wait)
        raise make_refusal(401, "this token is not this node's")


def list_kernel_words(catalog: FaultCatalog) -> list[str]:
    """Return the literal texts by which an agent finds the catalogue's kernel lines; "" if a pattern has none."""
    patterns = [fault.kernel_log_pattern for fault in catalog.classes.values() if fault.kernel_log_pattern]
    words = {word for pattern in patterns for word in (*pattern.begins, *pattern.holds)}
    return sorted(words | ({""} if any(not (pattern.begins or pattern.holds) for pattern in patterns) else set()))
