"""`POST /agent/v1/nodes/NODE/batches`: what a node's agent delivers (see assay.agent.push)."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from assay.model.errors import Trouble
from assay.model.faults import FaultCatalog
from assay.web.batch import Refused, read
from assay.web.rate import Rate
from assay.web.replies import body_of, refusal
from assay.web.room import Room
from assay.web.tokens import bearer

LARGEST = 8 * 1024 * 1024
AT_ONCE, PER_SECOND = 200, 40.0
STRANGE_AT_ONCE, STRANGE_PER_SECOND = 20, 1.0


def routes(room: Room) -> Sequence[BaseRoute]:
    """Return the agents' route."""
    desk = Agents(room)
    return [Route("/agent/v1/nodes/{node}/batches", desk.batch, methods=["POST"])]


class Agents:
    """Takes batches of the nodes that show their token, each at its pace."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._rate, self._strange = Rate(AT_ONCE, PER_SECOND), Rate(STRANGE_AT_ONCE, STRANGE_PER_SECOND)
        self._words = words_of(room.desk.fleet.catalog)

    async def batch(self, request: Request) -> Response:
        """Take one batch, and answer when it is written down."""
        node = await self._who(request)
        if wait := self._rate.wait_s(node):
            raise refusal(429, "too many batches; wait a little", wait_s=wait)
        body = await body_of(request, LARGEST)
        try:
            batch = read(body, node)
        except Refused as why:
            raise refusal(422, str(why)) from None
        try:
            acked = await self._room.intake.take(batch)
        except Trouble as trouble:
            raise refusal(503, trouble.what, wait_s=5) from None
        answer = {"acked": acked} | ({} if batch.agent.words == self._words else {"words": self._words})
        return JSONResponse(answer)

    async def _who(self, request: Request) -> str:
        """Return the node that speaks. Who fails often from one address must wait; why is not told apart."""
        name = str(request.path_params["node"])
        if await self._room.tokens.is_of(self._room.desk.fleet.nodes.get(name), bearer(request)):
            return name
        if wait := self._strange.wait_s(request.client.host if request.client else ""):
            raise refusal(429, "too many refusals; wait a little", wait_s=wait)
        raise refusal(401, "this token is not this node's")


def words_of(catalog: FaultCatalog) -> list[str]:
    """Return the literal texts by which an agent finds what the catalogue looks for; "" where a pattern has none."""
    rules = [fault.kernel for fault in catalog.classes.values() if fault.kernel]
    words = {word for rule in rules for word in (*rule.begins, *rule.holds)}
    return sorted(words | ({""} if any(not (rule.begins or rule.holds) for rule in rules) else set()))
