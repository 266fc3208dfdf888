"""One-time tokens, and what a node joins with for one: the agent's token, a cluster's bootstrap token, Slurm's key.

A secret is made or read before its token is taken, so that an outage costs no token. Ledger and logs never have it. The
ledger decides which tokens are good, so any number of servers may do it at once. A bootstrap token is a Secret in
kube-system with an end (Kubernetes documentation, "Authenticating with Bootstrap Tokens").
"""

from __future__ import annotations

import hashlib
import secrets
import string
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from assay.act.ingest.fault_recording import make_sighting_entries
from assay.act.loop.context import ControllerContext
from assay.act.orders.orders import refuse_watched
from assay.adapters.kubernetes.client import ApiRequest, connect_cluster
from assay.declare.secret_lookup import read_secret
from assay.ledger.store import Ledger
from assay.model.entries.boot import JoinIssuedEntry, JoinRefusedEntry, JoinRevokedEntry, JoinUsedEntry
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.faults.sightings import FaultSighting
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.specs.node_settings import KubernetesClusterSettings
from assay.model.specs.provisioning import KubernetesJoin
from assay.model.text.safe_text import register_secret
from assay.model.timestamps import format_time, parse_time

JOIN_KINDS = (JoinIssuedEntry.kind, JoinUsedEntry.kind, JoinRevokedEntry.kind, JoinRefusedEntry.kind)


class JoinRequest(NamedTuple):
    """Who asks, and for what. `node` is the one whose identity was proved, not a name that was only given."""

    node: str
    attempt: str
    purpose: str


@frozen
class JoinToken:
    """One token that was issued. `ended_by`: the kind of the entry that ended it, "" if nothing did."""

    request: JoinRequest
    expires_at: datetime
    ended_by: str = ""


class JoinRefusal(NamedTuple):
    """Why a token is not taken. `is_replay`: somebody has it who should not, so it is an alarm."""

    reason: str
    is_replay: bool = False


def hash_token(token: str) -> str:
    """Return the SHA-256 of a token, under which the ledger knows it."""
    return hashlib.sha256(token.encode()).hexdigest()


def read_tokens(entries: Iterable[LedgerEntry]) -> dict[str, JoinToken]:
    """Return the tokens by their SHA-256, from entries of any kinds in order."""
    tokens: dict[str, JoinToken] = {}
    for entry in entries:
        if entry.kind == JoinIssuedEntry.kind:
            issued = JoinIssuedEntry.read(entry)
            request = JoinRequest(entry.node, issued.attempt, issued.purpose)
            tokens[issued.token_sha256] = JoinToken(request, parse_time(issued.expires_at))
        elif entry.kind in (JoinUsedEntry.kind, JoinRevokedEntry.kind):
            content = JoinUsedEntry if entry.kind == JoinUsedEntry.kind else JoinRevokedEntry
            digest = content.read(entry).token_sha256
            if digest in tokens:
                tokens[digest] = replace(tokens[digest], ended_by=entry.kind)
    return tokens


def is_closed(entries: Iterable[LedgerEntry], asked: JoinRequest) -> bool:
    """Return whether an attempt gets no more tokens: one of them was revoked or replayed."""
    for entry in entries:
        if entry.node == asked.node and entry.kind == JoinRevokedEntry.kind:
            if JoinRevokedEntry.read(entry).attempt == asked.attempt:
                return True
        elif entry.node == asked.node and entry.kind == JoinRefusedEntry.kind:
            refused = JoinRefusedEntry.read(entry)
            if refused.is_replay and refused.attempt == asked.attempt:
                return True
    return False


def find_refusal(token: JoinToken | None, asked: JoinRequest, now: datetime) -> JoinRefusal | None:
    """Return why a token may not be used, None if it may. None for a token: the ledger knows no such token."""
    if token is None:
        return JoinRefusal("it is no token of this fleet")
    if token.request.node != asked.node:
        return JoinRefusal(f"it is the token of {token.request.node}, and was shown for {asked.node}", is_replay=True)
    if token.ended_by == JoinUsedEntry.kind:
        return JoinRefusal("it was used before", is_replay=True)
    if token.ended_by:
        return JoinRefusal("it was revoked")
    if token.request != asked:
        other = "another start of the node" if token.request.purpose == asked.purpose else token.request.purpose
        return JoinRefusal(f"it is for {other}")
    if now >= token.expires_at:
        return JoinRefusal(f"it was good until {token.expires_at:%Y-%m-%d %H:%M:%S} UTC")
    return None


def make_issued_entry(
    asked: JoinRequest, digest: str, expires_at: datetime, proven_by: str, now: datetime
) -> LedgerEntry:
    """Return the entry of a new token. A second one for the same request has the same id, so it is not taken."""
    content = JoinIssuedEntry(digest, asked.purpose, asked.attempt, format_time(expires_at), proven_by)
    return content.make_entry(derive_id(content.kind, *asked), format_time(now), asked.node)


def make_used_entry(asked: JoinRequest, digest: str, now: datetime) -> LedgerEntry:
    """Return the entry of a use."""
    content = JoinUsedEntry(digest, asked.purpose, asked.attempt)
    return content.make_entry(_name_end(digest), format_time(now), asked.node)


def make_revoked_entry(digest: str, token: JoinToken, reason: str, now: datetime) -> LedgerEntry:
    """Return the entry of a revocation."""
    request = token.request
    content = JoinRevokedEntry(digest, request.purpose, request.attempt, reason)
    return content.make_entry(_name_end(digest), format_time(now), request.node)


def make_refused_entry(asked: JoinRequest, digest: str, refusal: JoinRefusal, now: datetime) -> LedgerEntry:
    """Return the entry of a refusal. The same of the same node is recorded once a day, so nobody fills the ledger."""
    content = JoinRefusedEntry(digest, asked.purpose, asked.attempt, *refusal)
    ident = derive_id(content.kind, asked.node, digest, refusal.reason, f"{now:%Y-%m-%d}")
    return content.make_entry(ident, format_time(now), asked.node)


def _name_end(digest: str) -> str:
    return derive_id("join.ended", digest)


SYSTEM = "kube-system"
GROUP = "system:bootstrappers:assay"
"""Nodes join as this group; RBAC of the cluster says what it may do."""
ALPHABET = string.ascii_lowercase + string.digits


def make_bootstrap_token(join: KubernetesJoin, asked: JoinRequest, expires_at: datetime) -> str:
    """Return a new token, good until `expires_at`. Raises AssayError where the API server refuses it."""
    letters = "".join(secrets.choice(ALPHABET) for _ in range(6 + 16))
    ident, secret = letters[:6], letters[6:]
    register_secret(secret)
    content = {
        "token-id": ident,
        "token-secret": secret,
        "expiration": format_time(expires_at),
        "usage-bootstrap-authentication": "true",
        "auth-extra-groups": GROUP,
        "description": f"assay: {asked.node}, start {asked.attempt}",
    }
    name = f"bootstrap-token-{ident}"
    body = {"metadata": {"name": name}, "type": "bootstrap.kubernetes.io/token", "stringData": content}
    api = connect_cluster(KubernetesClusterSettings(kubeconfig=join.kubeconfig, context=join.context))
    api.request(ApiRequest("create", "secrets", name, SYSTEM), api.core.create_namespaced_secret, SYSTEM, body)
    return f"{ident}.{secret}"


REPLAY_FAULT = "security.join-token-replayed"


class JoinRefusedError(AssayError):
    """A node may not have, or not use, a token."""


def issue_token(ledger: Ledger, asked: JoinRequest, proven_by: str, expires_at: datetime, now: datetime) -> str:
    """Return a new token. It is nowhere else: the ledger has its SHA-256.

    A node gets one for each attempt and purpose; one whose answer was lost boots again. So does one whose token was
    revoked or replayed. Raises JoinRefusedError.
    """
    if is_closed(ledger.entries(asked.node, kinds=JOIN_KINDS), asked):
        raise record_refusal(ledger, asked, "", JoinRefusal("a token of this attempt was revoked or replayed"), now)
    if now >= expires_at:
        raise record_refusal(ledger, asked, "", JoinRefusal("the time of this attempt is over"), now)
    token = secrets.token_urlsafe(32)
    if ledger.append(make_issued_entry(asked, hash_token(token), expires_at, proven_by, now)) != [True]:
        raise record_refusal(ledger, asked, "", JoinRefusal(f"its token for {asked.purpose} was given out before"), now)
    return token


def use_token(context: ControllerContext, asked: JoinRequest, token: str, sender: str = "") -> None:
    """Take a token: whoever returns from here may have the secret that it stands for, once.

    Raises JoinRefusedError; then the refusal is in the ledger. Who shows a token has not proved to be the node that he
    names, so a token that is shown again, or for another node, concerns the one that it belongs to alone: it has a
    fault with the address of the `sender`, and the start that the token was for gets no more.
    """
    ledger, now, digest = context.ledger, context.clock.now(), hash_token(token)
    known = _find_token(ledger, asked.node, digest)
    while (refusal := find_refusal(known, asked, now)) is None:
        if ledger.append(make_used_entry(asked, digest, now)) == [True]:
            return
        known = _find_token(ledger, asked.node, digest)  # another process ended it first
    if refusal.is_replay and known:
        _record_replay(context, known.request, digest, refusal, sender)
        raise JoinRefusedError(f"{asked.node} may not join: {refusal.reason}")
    raise record_refusal(ledger, asked, digest if known else "", refusal, now)


def find_token_refusal(context: ControllerContext, asked: JoinRequest, token: str) -> JoinRefusal | None:
    """Return why a token would not be taken now, None if it would. Records nothing."""
    return find_refusal(_find_token(context.ledger, asked.node, hash_token(token)), asked, context.clock.now())


def record_refusal(
    ledger: Ledger, asked: JoinRequest, digest: str, refusal: JoinRefusal, now: datetime
) -> JoinRefusedError:
    """Record why a node was refused, and return the error. `digest`: "" for what is no known token."""
    ledger.append(make_refused_entry(asked, digest, refusal, now))
    return JoinRefusedError(f"{asked.node} may not join: {refusal.reason}")


def _find_token(ledger: Ledger, node: str, digest: str) -> JoinToken | None:
    """Return a token: nearly always it is one of the node that shows it."""
    own = read_tokens(ledger.entries(node, kinds=JOIN_KINDS))
    return own.get(digest) or read_tokens(ledger.entries(kinds=JOIN_KINDS)).get(digest)


def _record_replay(
    context: ControllerContext, owned: JoinRequest, digest: str, refusal: JoinRefusal, sender: str
) -> None:
    """Record in one transaction the refusal, the owner's fault, and the end of the open tokens of that start.

    `owned`: what the token is for. It is recorded once a day, whoever shows it.
    """
    ledger = context.ledger
    with context.hold_fault_lock():
        now = context.clock.now()
        refused = make_refused_entry(owned, digest, refusal._replace(reason="it was shown again, or by another"), now)
        tokens = read_tokens(entries := ledger.entries(owned.node, kinds=JOIN_KINDS))
        if any(entry.id == refused.id for entry in entries):
            return
        detail = f"its token for {owned.purpose} was shown{sender and f' by {sender}'} and not taken: {refusal.reason}"
        sighting = FaultSighting(REPLAY_FAULT, "", format_time(now), detail, "join", format_time(now))
        revoked = [
            make_revoked_entry(open_digest, token, "a token was replayed", now)
            for open_digest, token in tokens.items()
            if token.request.attempt == owned.attempt and not token.ended_by and now < token.expires_at
        ]
        ledger.append(refused, *make_sighting_entries(context, owned.node, sighting), *revoked)


DIGEST_PREFIX = "sha256:"


def redeem_token(context: ControllerContext, asked: JoinRequest, token: str, sender: str) -> str:
    """Return the secret of a token, once. Raises JoinRefusedError, or AssayError where the secret cannot be had now."""
    secret = ""
    refuse_watched(context.fleet, asked.node, "netboot")
    if find_token_refusal(context, asked, token) is None:
        secret = _make_secret(context, asked)
    use_token(context, asked, token, sender)
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
