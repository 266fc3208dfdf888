"""Gives a node, for a token, what it joins with: the agent's token, a cluster's bootstrap token, Slurm's key.

A secret is made or read before its token is taken, so that an outage costs no token. Ledger and logs never have it.
"""

from __future__ import annotations

from datetime import timedelta

from assay.act.boot.join_requests import find_token_refusal, use_token
from assay.act.boot.join_tokens import JoinRequest
from assay.act.boot.kubernetes_bootstrap import make_bootstrap_token
from assay.act.loop.context import ControllerContext
from assay.act.orders.trust_orders import refuse_watched
from assay.declare.secret_lookup import read_secret
from assay.model.errors import AssayError

DIGEST_PREFIX = "sha256:"


def redeem_token(context: ControllerContext, asked: JoinRequest, token: str) -> str:
    """Return the secret of a token, once. Raises JoinRefusedError, or AssayError where the secret cannot be had now."""
    secret = ""
    refuse_watched(context.fleet, asked.node, "netboot")
    if find_token_refusal(context, asked, token) is None:
        secret = _make_secret(context, asked)
    use_token(context, asked, token)
    return secret


def _make_secret(context: ControllerContext, asked: JoinRequest) -> str:
    fleet = context.fleet
    provisioning = fleet.provisioning_of(asked.node)
    joins = provisioning.joins if provisioning else None
    if asked.purpose == "agent":
        return _read_agent_token(context, asked.node)
    if asked.purpose == "kubernetes" and joins and joins.kubernetes:
        lifetime = timedelta(minutes=joins.kubernetes.token_minutes)
        return make_bootstrap_token(joins.kubernetes, asked, context.clock.now() + lifetime)
    if asked.purpose == "slurm" and joins and joins.slurm:
        return read_secret(joins.slurm.key, fleet.root)
    raise AssayError(f"the Provisioning no longer joins nodes to {asked.purpose}", where=asked.node)


def _read_agent_token(context: ControllerContext, node: str) -> str:
    fix = "give the node's `agent_token` as env, file, command or vault: a digest alone cannot be given out"
    for reference in context.fleet.nodes[node].settings.agent_token:
        text = "" if reference.sha256 else read_secret(reference, context.fleet.root)
        if text and not text.startswith(DIGEST_PREFIX):
            return text
    raise AssayError("the server has no agent token of the node", where=node, fix=fix)
