"""Entries by which people decide: holds, moves, certifications, cleared breakers, and the commits that they sign."""

from __future__ import annotations

from dataclasses import dataclass, field

from assay.model.entries.entry_content import EntryContent, stored_as


@dataclass(frozen=True, slots=True)
class HoldEntry(EntryContent):
    """A person holds a node where it is. `until` is when the hold ends (ISO 8601 UTC), "" where it is open."""

    kind = "hold"
    who: str
    reason: str
    until: str = field(default="", metadata=stored_as(omit_empty=True))


@dataclass(frozen=True, slots=True)
class ReleaseEntry(EntryContent):
    """A hold ends: by a person, or by assay (`who`) when its time is over."""

    kind = "release"
    who: str
    reason: str


@dataclass(frozen=True, slots=True)
class CertifiedEntry(EntryContent):
    """A person certifies a node."""

    kind = "certified"
    who: str
    reason: str


@dataclass(frozen=True, slots=True)
class MoveEntry(EntryContent):
    """A person wants the node in state `to`; `now` means without waiting for it to be idle.

    `rollout` is the id of the rollout that gives the order, "" for an order by a person. `within_hours` is how long the
    order is meant, 0 for as long as the policy says.
    """

    kind = "move"
    to: str
    who: str
    reason: str
    now: bool = field(default=False, metadata=stored_as(omit_empty=True))
    rollout: str = field(default="", metadata=stored_as(missing="", omit_empty=True))
    within_hours: float = field(default=0.0, metadata=stored_as(missing=0.0, omit_empty=True))


class ZapRequestedEntry(MoveEntry):
    """A person wants the node zapped; `to` is the state that zaps it."""

    __slots__ = ()
    kind = "zap.asked"


@dataclass(frozen=True, slots=True)
class ApprovedEntry(EntryContent):
    """A person says yes to a decision, or lets an order that has outlived its time go on.

    `decision` is the id of what was decided or held back, or of the order. `within_hours` is how long the yes is meant,
    0 for as long as the policy says.
    """

    kind = "approved"
    decision: str
    who: str
    reason: str
    within_hours: float = field(default=0.0, metadata=stored_as(missing=0.0, omit_empty=True))


class DeclinedEntry(ApprovedEntry):
    """A person says no to a decision."""

    __slots__ = ()
    kind = "declined"


@dataclass(frozen=True, slots=True)
class OrderOutlivedEntry(EntryContent):
    """An order, or a decision that follows from one, has outlived its time. It waits for a person."""

    kind = "order.outlived"
    order: str
    reason: str


@dataclass(frozen=True, slots=True)
class BreakerClearedEntry(EntryContent):
    """A person clears the breaker of a pool: the node's faults so far are no wave, and are answered within the limits.

    Each node with such faults has an entry of its own.
    """

    kind = "breaker.cleared"
    pool: str
    who: str
    reason: str


@dataclass(frozen=True, slots=True)
class CommitAcceptedEntry(EntryContent):
    """A signed commit of the fleet repository was accepted; `key` is the fingerprint of the signing key."""

    kind = "commit.accepted"
    commit: str
    signer: str = field(metadata=stored_as(missing=""))
    key: str = field(metadata=stored_as(missing=""))


@dataclass(frozen=True, slots=True)
class OtherLedgerSealedEntry(EntryContent):
    """A seal of another ledger, as assay kept it in ledgers until 2026: how its chains ended at `at` (ISO 8601 UTC)."""

    kind = "ledger.sealed"
    seal: str
    at: str
    who: str


@dataclass(frozen=True, slots=True)
class OutcomesPrunedEntry(EntryContent):
    """A person deleted old outcomes by the policy: of the runs up to number `through`, all but the newest of each kind.

    `digest` covers what is left of these runs, so that the ledger can still be verified; `deleted` is their number.
    """

    kind = "outcomes.pruned"
    through: int
    deleted: int
    digest: str
    who: str


@dataclass(frozen=True, slots=True)
class EvidencePrunedEntry(EntryContent):
    """A person deletes old evidence by the policy: so many documents that were last used before a time (ISO 8601 UTC).

    The entry is written before the first is deleted; one that is used meanwhile stays.
    """

    kind = "evidence.pruned"
    before: str
    documents: int
    bytes: int
    who: str


@dataclass(frozen=True, slots=True)
class EntriesArchivedEntry(EntryContent):
    """A person moved the bodies of old entries into an archive: `file`, with its `sha256`; `archived` is their number.

    `digest` covers what is left of the entries up to number `through`, so that the ledger can still be verified.
    """

    kind = "entries.archived"
    through: int
    archived: int
    digest: str
    file: str
    sha256: str
    who: str
