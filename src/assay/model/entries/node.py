"""Entries about where a node is: its first entry, and each change of its state.

Entries about what was decided for a node, and about pending decisions that were taken back.

Entries by which people decide: holds, moves, certifications, cleared breakers, and the commits that they sign.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from assay.model.decision import Decision, DecisionCause, DecisionTiming
from assay.model.entries.entry_content import EntryContent, stored_as, stored_list
from assay.model.ledger_entry import LedgerEntry


@dataclass(frozen=True, slots=True)
class NodeEnrolledEntry(EntryContent):
    """The first entry of a machine: its pool, its serial number, and the state in which the inventory starts it.

    `reason` says why it does not start as the inventory asks, "" if it does.
    """

    kind = "node.enrolled"
    pool: str
    state: str
    serial: str = field(default="", metadata=stored_as(missing="", omit_empty=True))
    reason: str = field(default="", metadata=stored_as(missing="", omit_empty=True))


@dataclass(frozen=True, slots=True)
class NodeRenamedEntry(EntryContent):
    """A machine that was `old` has this name now: its state, faults and holds come with it. `pool` is its pool now."""

    kind = "node.renamed"
    serial: str
    old: str = field(metadata=stored_as("from"))
    pool: str


@dataclass(frozen=True, slots=True)
class NodeLeftEntry(EntryContent):
    """The machine of this name has the name `new` now. Whatever comes under the old name is another machine."""

    kind = "node.left"
    new: str = field(metadata=stored_as("to"))


@dataclass(frozen=True, slots=True)
class TransitionEntry(EntryContent):
    """A node changed its state. `decision` is the id of the decision behind it; `reason` is read from old entries."""

    kind = "transition"
    from_state: str = field(metadata=stored_as("from"))
    to_state: str = field(metadata=stored_as("to"))
    decision: str = field(metadata=stored_as(missing=""))
    reason: str = field(default="", metadata=stored_as(omit_empty=True))


def read_entered_state(entry: LedgerEntry) -> str:
    """Return the state into which an enrolment or a transition brings the node."""
    if entry.kind == NodeEnrolledEntry.kind:
        return NodeEnrolledEntry.read(entry).state
    return TransitionEntry.read(entry).to_state


def _parse_causes(causes: Iterable[dict[str, Any]]) -> tuple[DecisionCause, ...]:
    return tuple([DecisionCause(cause["kind"], cause["id"], cause["text"]) for cause in causes])


def _encode_causes(causes: Iterable[DecisionCause]) -> list[dict[str, str]]:
    return [cause.as_json() for cause in causes]


@dataclass(frozen=True, slots=True)
class DecisionEntry(EntryContent):
    """A decision. `decision` is its id, `rule` is `file:line name`; see `model.decision.Decision` for the rest."""

    kind = "decision"
    decision: str
    from_state: str = field(metadata=stored_as("from"))
    to_state: str = field(metadata=stored_as("to"))
    timing: DecisionTiming
    rule: str
    remedy: str = field(metadata=stored_as(missing=""))
    causes: tuple[DecisionCause, ...] = field(
        metadata=stored_as("because", missing=(), parse=_parse_causes, encode=_encode_causes)
    )
    blockers: tuple[str, ...] = field(metadata=stored_list(missing=()))

    @classmethod
    def from_decision(cls, decision: Decision) -> DecisionEntry:
        """Return the content of the entry that records a decision."""
        return cls(
            decision=decision.id,
            from_state=decision.from_state,
            to_state=decision.to_state,
            timing=decision.timing,
            rule=decision.rule,
            remedy=decision.remedy,
            causes=decision.causes,
            blockers=decision.blockers,
        )


@dataclass(frozen=True, slots=True)
class DecisionWithdrawnEntry(EntryContent):
    """A pending decision was taken back. `by` is the id of the decision that did it, "" where a person did."""

    kind = "decision.withdrawn"
    decision: str
    reason: str = field(metadata=stored_as(missing=""))
    by: str = field(default="", metadata=stored_as(omit_empty=True))
    who: str = field(default="", metadata=stored_as(omit_empty=True))


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
