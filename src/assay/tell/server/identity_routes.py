"""A node that boots proves which machine it is, and gets its secrets: by HTTPS alone, each once.

Below `/boot/v1/attempts/ATTEMPT`: `POST challenge` begins a proof by TPM; `POST identity` with a proof gives one-time
tokens; `POST join/PURPOSE` with a token gives what the node joins with.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Annotated, Self, TypeVar, get_args

from pydantic import Base64Bytes, BaseModel, ConfigDict, Field, ValidationError, model_validator
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from assay.act.boot.attempts import find_node_of
from assay.act.boot.joins import JoinRefusedError, JoinRequest, redeem_token
from assay.act.boot.node_identity import NodeProof, issue_tokens, make_challenge
from assay.act.boot.script import BOOT_PATH
from assay.act.boot.tpm import TpmError
from assay.model.errors import AssayError
from assay.model.outside_documents import describe_mistakes
from assay.model.specs.provisioning import JoinPurpose
from assay.tell.server.agent_tokens import read_bearer_token
from assay.tell.server.app_state import AppState
from assay.tell.server.requests import make_refusal, read_body

MAX_BODY_BYTES = 16 * 1024
NO_STORE = {"Cache-Control": "no-store"}
Result = TypeVar("Result")
Body = TypeVar("Body", bound=BaseModel)
TpmBytes = Annotated[Base64Bytes, Field(max_length=4096)]


class ChallengeBody(BaseModel):
    """The public areas (TPM2B_PUBLIC) of a TPM's endorsement key and attestation key."""

    model_config = ConfigDict(extra="forbid")

    endorsement_key: TpmBytes
    attestation_key: TpmBytes


class ProofBody(BaseModel):
    """What proves the node: the number of its BMC; or its TPM's key, and what the TPM unwrapped and quotes."""

    model_config = ConfigDict(extra="forbid")

    bmc_nonce: str = Field(default="", max_length=256)
    attestation_key: TpmBytes = b""
    secret: TpmBytes = b""
    quote: TpmBytes = b""
    signature: TpmBytes = b""

    @model_validator(mode="after")
    def require_proof(self) -> Self:
        """Refuse a body without a proof."""
        if not self.bmc_nonce and not self.secret:
            raise ValueError("give bmc_nonce, or attestation_key and secret")
        return self


def routes(state: AppState) -> Sequence[BaseRoute]:
    """Return the routes of nodes that prove themselves."""
    proofs = IdentityProofs(state)
    start = f"{BOOT_PATH}/attempts/{{attempt}}"
    return [
        Route(f"{start}/challenge", proofs.post_keys, methods=["POST"]),
        Route(f"{start}/identity", proofs.post_proof, methods=["POST"]),
        Route(f"{start}/join/{{purpose}}", proofs.post_token, methods=["POST"]),
    ]


class IdentityProofs:
    """Takes proofs and tokens."""

    def __init__(self, state: AppState) -> None:
        self._state = state
        self._authenticator = state.make_authenticator("refused: assay's ledger says why")

    async def post_keys(self, request: Request) -> Response:
        """Return a secret that only the TPM with these keys unwraps, if it is the node's."""
        attempt, body = await self._read(request, ChallengeBody)
        keys = body.endorsement_key, body.attestation_key
        challenge = await self._settle(request, attempt, lambda: make_challenge(self._state.context, attempt, *keys))
        credential = base64.b64encode(challenge.credential).decode()
        return JSONResponse({"challenge": {"credential": credential, "pcrs": challenge.pcrs}}, headers=NO_STORE)

    async def post_proof(self, request: Request) -> Response:
        """Return one-time tokens by purpose, for what only the node's own BMC or TPM showed its machine."""
        attempt, body = await self._read(request, ProofBody)
        proof = NodeProof(**dict(body))
        tokens = await self._settle(request, attempt, lambda: issue_tokens(self._state.context, attempt, proof))
        return JSONResponse({"tokens": tokens}, headers=NO_STORE)

    async def _read(self, request: Request, form: type[Body]) -> tuple[str, Body]:
        """Return the attempt that is named, and the body. Raises a refusal for plain HTTP, and for another body."""
        _require_https(request)
        content = await read_body(request, MAX_BODY_BYTES, self._state.limits.connections.body_seconds)
        try:
            return str(request.path_params["attempt"]), form.model_validate_json(content)
        except ValidationError as error:
            raise make_refusal(422, describe_mistakes(error, "the body")) from None

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
        sender = self._state.find_sender(request)
        secret = await self._settle(request, attempt, lambda: redeem_token(self._state.context, asked, token, sender))
        return JSONResponse({"secret": secret}, headers=NO_STORE)

    async def _settle(self, request: Request, attempt: str, act: Callable[[], Result]) -> Result:
        """Return what a step gives; a refusal is recorded, and says the same to everybody."""
        refusal, result = "", None
        try:
            result = await run_in_threadpool(act)
        except (JoinRefusedError, TpmError) as error:
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
