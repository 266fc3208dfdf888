"""Entries about one-time tokens, with which a node joins what it belongs to. A token is stored only by its SHA-256."""

from __future__ import annotations

from dataclasses import dataclass, field

from assay.model.entries.entry_content import EntryContent, stored_as


@dataclass(frozen=True, slots=True)
class JoinIssuedEntry(EntryContent):
    """A node got a token. `expires_at`: ISO 8601 UTC. `proven_by`: how it had proved which machine it is."""

    kind = "join.issued"
    token_sha256: str
    purpose: str
    attempt: str
    expires_at: str
    proven_by: str


@dataclass(frozen=True, slots=True)
class JoinUsedEntry(EntryContent):
    """A node used its token. It is good for nothing more."""

    kind = "join.used"
    token_sha256: str
    purpose: str
    attempt: str


@dataclass(frozen=True, slots=True)
class JoinRefusedEntry(EntryContent):
    """A node was refused, with the purpose and the attempt that it named. `token_sha256` is "" for no known token.

    `is_replay`: it showed a token that was used, or that belongs to another node.
    """

    kind = "join.refused"
    token_sha256: str
    purpose: str
    attempt: str
    why: str
    is_replay: bool = field(default=False, metadata=stored_as("replay", missing=False, omit_empty=True))


@dataclass(frozen=True, slots=True)
class JoinRevokedEntry(EntryContent):
    """A token that was not used yet is good for nothing more, and why."""

    kind = "join.revoked"
    token_sha256: str
    purpose: str
    attempt: str
    why: str
