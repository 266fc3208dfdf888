"""Judges the proof of a node that boots, and gives it its one-time tokens. A proof holds for one start alone."""

from __future__ import annotations

import hashlib
import hmac
from datetime import timedelta

from assay.controller.context import ControllerContext
from assay.controller.ingest.boot_requests import find_attempt, record_stage
from assay.controller.ingest.join_requests import JoinRefusedError, issue_token
from assay.model.provisioning.provisioning_spec import IdentityProof, JoinPurpose, Provisioning
from assay.provisioning.boot_attempts import BootAttempt
from assay.provisioning.boot_loops import is_open
from assay.provisioning.identity.join_tokens import JoinRequest

REFUSED = "the proof is not this machine's"
"""The answer to every bad proof: it does not say what was wrong with it."""


def issue_tokens(context: ControllerContext, name: str, nonce: str) -> dict[JoinPurpose, str]:
    """Return a token for each purpose of a start, for the number that only its own BMC showed the machine.

    Raises JoinRefusedError; its text is for the node, and tells an attacker nothing.
    """
    attempt = find_attempt(context, name)
    provisioning = context.fleet.provisioning_of(attempt.node) if attempt else None
    if attempt is None or provisioning is None or not is_open(attempt, provisioning, context.clock.now()):
        raise JoinRefusedError("no such start is under way")
    if not _is_proven(attempt, provisioning, nonce):
        raise JoinRefusedError(REFUSED)
    proof: IdentityProof = "bmc-nonce"
    now = context.clock.now()
    expires_at = attempt.stages.get("pxe", attempt.started_at) + timedelta(minutes=provisioning.token_minutes)
    record_stage(context, attempt, "cloud-init", proof)
    return {
        purpose: issue_token(context.ledger, JoinRequest(attempt.node, name, purpose), proof, expires_at, now)
        for purpose in list_purposes(provisioning)
    }


def list_purposes(provisioning: Provisioning) -> list[JoinPurpose]:
    """Return what the nodes of a Provisioning join."""
    joins = provisioning.joins
    found: list[JoinPurpose] = ["agent"]
    found += ["kubernetes"] if joins.kubernetes else []
    found += ["slurm"] if joins.slurm else []
    return found


def _is_proven(attempt: BootAttempt, provisioning: Provisioning, nonce: str) -> bool:
    """Whether the number is the one that was put into the BMC for this start; a start of the machine's own has none."""
    if "bmc-nonce" not in provisioning.proofs or not attempt.nonce_sha256:
        return False
    return hmac.compare_digest(hashlib.sha256(nonce.encode()).hexdigest(), attempt.nonce_sha256)
