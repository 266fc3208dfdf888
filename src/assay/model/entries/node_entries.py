"""Entries about where a node is: its first entry, and each change of its state."""

from __future__ import annotations

from dataclasses import dataclass, field

from assay.model.entries.entry_content import EntryContent, stored_as
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
