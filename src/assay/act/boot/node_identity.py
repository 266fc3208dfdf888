"""Judges the proof of a node that boots, and gives it its one-time tokens. A proof holds for one start alone."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from assay.act.boot.attempts import BootAttempt, is_open
from assay.act.boot.boot_requests import find_attempt, record_stage
from assay.act.boot.joins import JoinRefusal, JoinRefusedError, JoinRequest, issue_token, record_refusal
from assay.act.boot.tpm import TpmError, TpmQuote, find_endorsement_digest, find_key_name, make_credential, verify_quote
from assay.act.loop.context import ControllerContext
from assay.model.specs.provisioning import IdentityProof, JoinPurpose, Provisioning

SERVER_KEY, KEY_BYTES = "boot.key", 32
"""Servers of one fleet share this file: one may make a challenge, and another judge its answer."""


class NodeProof(NamedTuple):
    """What a node sends: the number of its BMC, or what its TPM unwrapped, with its attestation key (TPM2B_PUBLIC).

    `quote` (TPMS_ATTEST) and `signature` (TPMT_SIGNATURE): of the registers that its image declares, over `secret`.
    """

    bmc_nonce: str = ""
    attestation_key: bytes = b""
    secret: bytes = b""
    quote: bytes = b""
    signature: bytes = b""


class Challenge(NamedTuple):
    """`credential`: a secret that one TPM alone unwraps. `pcrs`: the registers of which it must show a quote."""

    credential: bytes
    pcrs: list[int]


class BootingNode(NamedTuple):
    """A start that is under way, and how its node boots."""

    attempt: BootAttempt
    provisioning: Provisioning


def make_challenge(context: ControllerContext, name: str, endorsement_key: bytes, attestation_key: bytes) -> Challenge:
    """Return a challenge for the node's own TPM. Raises JoinRefusedError, or TpmError for bad keys."""
    node = _find_booting_node(context, name)
    pinned = context.fleet.nodes[node.attempt.node].settings.endorsement_key_sha256
    if "tpm" not in node.provisioning.proofs or not pinned:
        raise JoinRefusedError(f"{node.attempt.node} has no endorsement_key_sha256, or no proof by TPM")
    if not hmac.compare_digest(find_endorsement_digest(endorsement_key), pinned):
        raise _refuse(context, node.attempt, "its TPM is not the one that the inventory has")
    secret = _derive_secret(context, name, attestation_key)
    return Challenge(
        make_credential(endorsement_key, attestation_key, secret), sorted(_list_pcrs(context, node.attempt))
    )


def issue_tokens(context: ControllerContext, name: str, proof: NodeProof) -> dict[JoinPurpose, str]:
    """Return a token for each purpose of a start whose node has proved itself. Raises JoinRefusedError."""
    attempt, provisioning = _find_booting_node(context, name)
    proven_by = _find_proof(context, attempt, provisioning, proof)
    if proven_by is None:
        raise _refuse(context, attempt, "its proof is wrong")
    record_stage(context, attempt, "cloud-init", proven_by)
    expires_at = attempt.stages.get("pxe", attempt.started_at) + timedelta(minutes=provisioning.token_minutes)
    now = context.clock.now()
    return {
        purpose: issue_token(context.ledger, JoinRequest(attempt.node, name, purpose), proven_by, expires_at, now)
        for purpose in list_purposes(provisioning)
    }


def list_purposes(provisioning: Provisioning) -> list[JoinPurpose]:
    """Return what the nodes of a Provisioning join."""
    joins = provisioning.joins
    purposes: list[JoinPurpose] = ["agent"]
    purposes += ["kubernetes"] if joins.kubernetes else []
    purposes += ["slurm"] if joins.slurm else []
    return purposes


def _find_booting_node(context: ControllerContext, name: str) -> BootingNode:
    attempt = find_attempt(context, name)
    provisioning = context.fleet.provisioning_of(attempt.node) if attempt else None
    if attempt is None or provisioning is None or not is_open(attempt, provisioning, context.clock.now()):
        raise JoinRefusedError("no such start is under way")
    return BootingNode(attempt, provisioning)


def _find_proof(
    context: ControllerContext, attempt: BootAttempt, provisioning: Provisioning, proof: NodeProof
) -> IdentityProof | None:
    """Return how the node is proved; None if it is not. Raises JoinRefusedError for a quote that does not hold.

    A start of the machine's own has no number in its BMC.
    """
    if proof.secret and "tpm" in provisioning.proofs:
        if not hmac.compare_digest(proof.secret, _derive_secret(context, attempt.name, proof.attestation_key)):
            return None
        if pcrs := _list_pcrs(context, attempt):
            quote = TpmQuote(proof.attestation_key, proof.quote, proof.signature)
            try:
                verify_quote(quote, find_key_name(proof.attestation_key), proof.secret, pcrs)
            except TpmError as error:
                raise _refuse(context, attempt, error.what) from None
        return "tpm"
    if proof.bmc_nonce and "bmc-nonce" in provisioning.proofs and attempt.nonce_sha256:
        digest = hashlib.sha256(proof.bmc_nonce.encode()).hexdigest()
        return "bmc-nonce" if hmac.compare_digest(digest, attempt.nonce_sha256) else None
    return None


def _refuse(context: ControllerContext, attempt: BootAttempt, reason: str) -> JoinRefusedError:
    asked = JoinRequest(attempt.node, attempt.name, "identity")
    return record_refusal(context.ledger, asked, "", JoinRefusal(reason), context.clock.now())


def _list_pcrs(context: ControllerContext, attempt: BootAttempt) -> dict[int, bytes]:
    """Return the registers that the image declares which the start was given."""
    image = context.fleet.images.get(attempt.image)
    return {number: bytes.fromhex(digest) for number, digest in image.pcrs.items()} if image else {}


def _derive_secret(context: ControllerContext, attempt: str, attestation_key: bytes) -> bytes:
    """Return the secret of a challenge: whoever knows it has the TPM to which it was wrapped, with this key."""
    message = b"activation\x00" + attempt.encode() + b"\x00" + find_key_name(attestation_key)
    return hmac.digest(_read_server_key(context.home / SERVER_KEY), message, "sha256")


def _read_server_key(path: Path) -> bytes:
    """Return the servers' own key, which the first of them makes: whole from the beginning, by its link."""
    if not path.exists():
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name) as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(file.name, path)
    return path.read_bytes()
