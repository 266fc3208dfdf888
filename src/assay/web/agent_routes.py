"""`POST /agent/v1/nodes/NODE/batches`: what a node's agent delivers (see assay.agent.batch_sender)."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from assay.model.errors import AssayError
from assay.model.specs.fault_catalog import FaultCatalog
from assay.web.agent_batch import BatchRefused, parse_batch
from assay.web.app_state import AppState
from assay.web.http_replies import make_refusal, read_body
from assay.web.tokens_and_rate_limits import RateLimiter, read_bearer_token

MAX_BODY_BYTES = 8 * 1024 * 1024
AGENT_BURST, AGENT_RATE = 200, 40.0
UNAUTHORIZED_BURST, UNAUTHORIZED_RATE = 20, 1.0


def routes(room: AppState) -> Sequence[BaseRoute]:
    """Return the agents' route."""
    desk = AgentRoutes(room)
    return [Route("/agent/v1/nodes/{node}/batches", desk.post_batch, methods=["POST"])]


class AgentRoutes:
    """Takes batches of the nodes that show their token, each at its pace."""

    def __init__(self, room: AppState) -> None:
        self._room = room
        self._rate, self._strange = (
            RateLimiter(AGENT_BURST, AGENT_RATE),
            RateLimiter(UNAUTHORIZED_BURST, UNAUTHORIZED_RATE),
        )
        self._words: list[str] = []
        self._words_of: FaultCatalog | None = None

    async def post_batch(self, request: Request) -> Response:
        """Take one batch, and answer when it is written down."""
        node = await self._who(request)
        if wait := self._rate.wait_s(node):
            raise make_refusal(429, "too many batches; wait a little", wait_s=wait)
        body = await read_body(request, MAX_BODY_BYTES)
        try:
            batch = parse_batch(body, node)
        except BatchRefused as why:
            raise make_refusal(422, str(why)) from None
        try:
            acked = await self._room.intake.submit(batch)
        except AssayError as trouble:
            raise make_refusal(503, trouble.what, wait_s=5) from None
        words = self._kernel_words()
        return JSONResponse({"acked": acked} | ({} if batch.agent.words == words else {"words": words}))

    def _kernel_words(self) -> list[str]:
        """Return the words of the current catalogue, which changes when the fleet is read again."""
        catalog = self._room.context.fleet.fault_catalog
        if catalog is not self._words_of:
            self._words, self._words_of = list_kernel_words(catalog), catalog
        return self._words

    async def _who(self, request: Request) -> str:
        """Return the node that speaks. Who fails often from one address must wait; why is not told apart."""
        name = str(request.path_params["node"])
        if await self._room.tokens.is_valid_for(self._room.context.fleet.nodes.get(name), read_bearer_token(request)):
            return name
        if wait := self._strange.wait_s(request.client.host if request.client else ""):
            raise make_refusal(429, "too many refusals; wait a little", wait_s=wait)
        raise make_refusal(401, "this token is not this node's")


def list_kernel_words(catalog: FaultCatalog) -> list[str]:
    """Return the literal texts by which an agent finds what the catalogue looks for; "" where a pattern has none."""
    rules = [fault.kernel_log_pattern for fault in catalog.classes.values() if fault.kernel_log_pattern]
    words = {word for rule in rules for word in (*rule.begins, *rule.holds)}
    return sorted(words | ({""} if any(not (rule.begins or rule.holds) for rule in rules) else set()))
