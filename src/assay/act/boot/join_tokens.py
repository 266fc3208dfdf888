"""The life of a one-time token, as the ledger's entries tell it: issued, then used or revoked, or over in time.

A token belongs to one node, one attempt to boot and one purpose. Only the server's clock counts. The entries of a use
and of a revocation have the same id, so the ledger takes only the first of them, whichever process writes it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from assay.model.entries.boot import JoinIssuedEntry, JoinRefusedEntry, JoinRevokedEntry, JoinUsedEntry
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.timestamps import format_time, parse_time

JOIN_KINDS = (JoinIssuedEntry.kind, JoinUsedEntry.kind, JoinRevokedEntry.kind, JoinRefusedEntry.kind)


class JoinRequest(NamedTuple):
    """Who asks, and for what. `node` is the one whose identity was proved, not a name that was only given."""

    node: str
    attempt: str
    purpose: str


@dataclass(frozen=True, slots=True)
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
    """Return whether an attempt gets no more tokens: one of them was revoked, or its node replayed a token in it."""
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
        return JoinRefusal(f"it is the token of {token.request.node}", is_replay=True)
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
