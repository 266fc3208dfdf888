"""A node that boots proves which machine it is, and gets its secrets: by HTTPS alone, each once.

`POST …/attempts/ATTEMPT/identity` with the number of the BMC gives one-time tokens; `POST
…/attempts/ATTEMPT/join/PURPOSE` with a token gives what the node joins with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TypeVar, get_args

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from assay.controller.ingest.join_requests import JoinRefusedError
from assay.controller.joins.join_secrets import redeem_token
from assay.controller.joins.node_identity import issue_tokens
from assay.model.errors import AssayError
from assay.model.provisioning.provisioning_spec import JoinPurpose
from assay.provisioning.boot_attempts import find_node_of
from assay.provisioning.boot_script import BOOT_PATH
from assay.provisioning.identity.join_tokens import JoinRequest
from assay.web.app_state import AppState
from assay.web.request_bodies_and_refusals import make_refusal, read_body
from assay.web.tokens_and_rate_limits import read_bearer_token

MAX_BODY_BYTES = 16 * 1024
NO_STORE = {"Cache-Control": "no-store"}
Result = TypeVar("Result")


def routes(state: AppState) -> Sequence[BaseRoute]:
    """Return the routes of nodes that prove themselves."""
    proofs = IdentityProofs(state)
    start = f"{BOOT_PATH}/attempts/{{attempt}}"
    return [
        Route(f"{start}/identity", proofs.post_proof, methods=["POST"]),
        Route(f"{start}/join/{{purpose}}", proofs.post_token, methods=["POST"]),
    ]


class IdentityProofs:
    """Takes proofs and tokens."""

    def __init__(self, state: AppState) -> None:
        self._state = state
        self._authenticator = state.make_authenticator("refused: assay's ledger says why")

    async def post_proof(self, request: Request) -> Response:
        """Return one-time tokens by purpose, for the number that the node's own BMC showed its machine."""
        _require_https(request)
        body = await read_body(request, MAX_BODY_BYTES, self._state.limits.connections.body_seconds)
        attempt, nonce = str(request.path_params["attempt"]), _read_nonce(body)
        tokens = await self._settle(request, attempt, lambda: issue_tokens(self._state.context, attempt, nonce))
        return JSONResponse({"tokens": tokens}, headers=NO_STORE)

    async def post_token(self, request: Request) -> Response:
        """Return the secret of a token, once."""
        _require_https(request)
        attempt, purpose = str(request.path_params["attempt"]), str(request.path_params["purpose"])
        if purpose not in get_args(JoinPurpose):
            raise make_refusal(404, f"no purpose {purpose[:40]}: {', '.join(get_args(JoinPurpose))}")
        node = find_node_of(attempt)
        if node not in self._state.context.fleet.nodes:
            self._authenticator.settle(request, f"join of {node[:64]}", "the inventory has no such node")
        asked, token = JoinRequest(node, attempt, purpose), read_bearer_token(request)
        secret = await self._settle(request, attempt, lambda: redeem_token(self._state.context, asked, token))
        return JSONResponse({"secret": secret}, headers=NO_STORE)

    async def _settle(self, request: Request, attempt: str, act: Callable[[], Result]) -> Result:
        """Return what a step gives; a refusal is recorded, and says the same to everybody."""
        refusal, result = "", None
        try:
            result = await run_in_threadpool(act)
        except JoinRefusedError as error:
            refusal = error.what
        except AssayError as error:
            self._state.report(f"start {attempt}: {error}")
            raise make_refusal(503, "the secret cannot be had now", wait_s=10) from None
        self._authenticator.settle(request, f"join of start {attempt[:100]}", refusal)
        assert result is not None, "everything else is refused"
        return result


def _require_https(request: Request) -> None:
    if request.url.scheme != "https":
        raise make_refusal(403, "secrets travel by HTTPS alone: use the Provisioning's secure_url")


def _read_nonce(body: bytes) -> str:
    try:
        plain = json.loads(body)
        nonce = plain["bmc_nonce"]
    except (ValueError, KeyError, TypeError):
        nonce = None
    if not isinstance(nonce, str) or not nonce:
        raise make_refusal(422, 'the body must be {"bmc_nonce": "…"}')
    return nonce
