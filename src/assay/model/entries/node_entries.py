"""Entries about where a node is, what was decided for it, and what people order: holds and moves."""

from __future__ import annotations

from assay.model.decision import Decision, DecisionCause, DecisionTiming
from assay.model.entries.entry_content import EntryContent
from assay.model.facts import fact, shown
from assay.model.ledger_entry import LedgerEntry


@fact
class NodeEnrolledEntry(EntryContent):
    """The first entry of a machine: its pool, its serial number, and the state in which the inventory starts it.

    `reason` says why it does not start as the inventory asks, "" if it does. `acts`: whether it gets the actions of a
    node that comes to `state`: that is where its burn-in is.
    """

    kind = "node.enrolled"
    pool: str
    state: str
    serial: str = shown(omit_stored=True, default="")
    reason: str = shown(omit_stored=True, default="")
    acts: bool = shown(omit_stored=True, default=False)


@fact
class NodeRenamedEntry(EntryContent):
    """A machine that was `old` has this name now: its state, faults and holds come with it. `pool` is its pool now."""

    kind = "node.renamed"
    serial: str
    old: str = shown("from")
    pool: str


@fact
class NodeLeftEntry(EntryContent):
    """The machine of this name has the name `new` now. Whatever comes under the old name is another machine."""

    kind = "node.left"
    new: str = shown("to")


@fact
class TransitionEntry(EntryContent):
    """A node changed its state. `decision` is the id of the decision behind it; `reason` is read from old entries."""

    kind = "transition"
    from_state: str = shown("from")
    to_state: str = shown("to")
    decision: str = shown(missing="")
    reason: str = shown(omit_stored=True, default="")


def read_entered_state(entry: LedgerEntry) -> str:
    """Return the state into which an enrolment or a transition brings the node."""
    if entry.kind == NodeEnrolledEntry.kind:
        return NodeEnrolledEntry.read(entry).state
    return TransitionEntry.read(entry).to_state


@fact
class DecisionEntry(EntryContent):
    """A decision. `decision` is its id, `rule` is `file:line name`; see `model.decision.Decision` for the rest."""

    kind = "decision"
    decision: str
    from_state: str = shown("from")
    to_state: str = shown("to")
    timing: DecisionTiming
    rule: str
    remedy: str = shown(missing="")
    causes: tuple[DecisionCause, ...] = shown("because", missing=())
    blockers: tuple[str, ...] = shown(missing=())
    customer: str = shown(omit_stored=True, default="")

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
            customer=decision.customer,
        )


@fact
class NodeReplacedEntry(EntryContent):
    """A spare takes the place of this node in its pool. Serial numbers say which machines these were.

    `since`: when the node left service (ISO 8601 UTC). `decision`: the one that brings the spare `by` into service.
    """

    kind = "node.replaced"
    pool: str
    serial: str
    by: str
    by_serial: str
    since: str
    decision: str


@fact
class DecisionWithdrawnEntry(EntryContent):
    """A pending decision was taken back. `by` is the id of the decision that did it, "" where a person did."""

    kind = "decision.withdrawn"
    decision: str
    reason: str = shown(missing="")
    by: str = shown(omit_stored=True, default="")
    who: str = shown(omit_stored=True, default="")


@fact
class HoldEntry(EntryContent):
    """A person holds a node where it is. `until` is when the hold ends (ISO 8601 UTC), "" where it is open."""

    kind = "hold"
    who: str
    reason: str
    until: str = shown(omit_stored=True, default="")


@fact
class ReleaseEntry(EntryContent):
    """A hold ends: by a person, or by assay (`who`) when its time is over."""

    kind = "release"
    who: str
    reason: str


@fact
class CertifiedEntry(EntryContent):
    """A person certifies a node."""

    kind = "certified"
    who: str
    reason: str


@fact
class OrderedOperation:
    """The operation that an order for a node is part of: its id, its name, and the caller's key.

    `actions` prove it, in the state that the order names. `role` is that of who gave it. `gpus` are the slots
    that it is about; none: all.
    """

    id: str
    name: str
    key: str
    actions: tuple[str, ...] = ()
    role: str = ""
    gpus: tuple[int, ...] = shown(omit_stored=True, default=())


@fact
class MoveEntry(EntryContent):
    """A person wants the node in state `to`; `now` means without waiting for it to be idle.

    `rollout` is the id of the rollout that gives the order, "" for an order by a person. `within_hours` is how long the
    order is meant, 0 for as long as the policy says. `operation` is there where the order is part of one.
    """

    kind = "move"
    to: str
    who: str
    reason: str
    now: bool = shown(omit_stored=True, default=False)
    rollout: str = shown(omit_stored=True, default="")
    within_hours: float = shown(omit_stored=True, default=0.0)
    operation: OrderedOperation | None = shown(omit_stored=True, default=None)


@fact
class OperationPlannedEntry(EntryContent):
    """An operation is to begin at a time: `starts_at` and, as expected, `ends_at` (ISO 8601 UTC).

    `operation` is its id, `key` the caller's, and `to` the state that carries it out.
    """

    kind = "operation.planned"
    operation: str
    name: str
    key: str
    to: str
    who: str
    reason: str
    nodes: tuple[str, ...]
    starts_at: str
    ends_at: str
    role: str = ""
    now: bool = False
    gpus: tuple[int, ...] = ()


@fact
class OperationDeferredEntry(EntryContent):
    """A planned operation begins at another time, as a person asked. `role` is that of who asked.

    With a node, `operation` is the rollout that begins there no sooner, and how long it takes is not said.
    """

    kind = "operation.deferred"
    operation: str
    who: str
    reason: str
    starts_at: str
    ends_at: str = ""
    role: str = ""


@fact
class OperationDroppedEntry(EntryContent):
    """A planned operation does not begin: a person cancelled it (`who`), or it was refused on a node at its time."""

    kind = "operation.dropped"
    operation: str
    who: str
    reason: str


@fact
class OperationReservedEntry(EntryContent):
    """What the node's scheduler answered when it was asked to keep jobs out of the window of planned work."""

    kind = "operation.reserved"
    operation: str
    reason: str


class ZapRequestedEntry(MoveEntry):
    """A person wants the node zapped; `to` is the state that zaps it."""

    __slots__ = ()
    kind = "zap.asked"


@fact
class ApprovedEntry(EntryContent):
    """A person says yes to a decision, or lets an order that has outlived its time go on.

    `decision` is the id of what was decided or held back, or of the order. `within_hours` is how long the yes is meant,
    0 for as long as the policy says.
    """

    kind = "approved"
    decision: str
    who: str
    reason: str
    within_hours: float = shown(omit_stored=True, default=0.0)


class DeclinedEntry(ApprovedEntry):
    """A person says no to a decision."""

    __slots__ = ()
    kind = "declined"


@fact
class OrderOutlivedEntry(EntryContent):
    """An order, or a decision that follows from one, has outlived its time. It waits for a person."""

    kind = "order.outlived"
    order: str
    reason: str


@fact
class BreakerClearedEntry(EntryContent):
    """A person clears the breaker of a pool: the node's faults so far are no wave, and are answered within the limits.

    Each node with such faults has an entry of its own. With `fault_class`, only faults of this class are meant.
    """

    kind = "breaker.cleared"
    pool: str
    who: str
    reason: str
    fault_class: str = shown(omit=True, default="")


@fact
class CommitAcceptedEntry(EntryContent):
    """A signed commit of the fleet repository was accepted; `key` is the fingerprint of the signing key."""

    kind = "commit.accepted"
    commit: str
    signer: str = shown(missing="")
    key: str = shown(missing="")


@fact
class OutcomesPrunedEntry(EntryContent):
    """A person deleted old outcomes by the policy: of the runs up to number `through`, all but the newest of each kind.

    `digest` covers what is left of these runs, so that the ledger can still be verified; `deleted` is their number.
    """

    kind = "outcomes.pruned"
    through: int
    deleted: int
    digest: str
    who: str


@fact
class EvidencePrunedEntry(EntryContent):
    """A person deletes old evidence by the policy: so many documents that were last used before a time (ISO 8601 UTC).

    The entry is written before the first is deleted; one that is used meanwhile stays.
    """

    kind = "evidence.pruned"
    before: str
    documents: int
    bytes: int
    who: str


@fact
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
