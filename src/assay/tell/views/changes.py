"""What has changed after a position of the ledger: every entry for staff; for customers, when their nodes serve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from assay.decide.state.node_state import NodeState
from assay.model.entries.node_entries import TransitionEntry
from assay.model.ledger_entry import LedgerEntry
from assay.tell.views.record_source import RecordSource


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """One entry of the ledger. For customers, `body` is only `{"in_service": true}` or `false`."""

    seq: int
    """Its number in the ledger."""
    at: str
    """When it was written: ISO 8601 with the offset of UTC."""
    kind: str
    """The kind of entry, such as fault, decision or transition."""
    node: str
    """The node that it is about; "" for none."""
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ChangePage:
    """Changes in order. `position`: ask for what comes after it. `more`: there is something already."""

    changes: tuple[RecordedChange, ...]
    """The changes, in order."""
    position: int
    more: bool


def list_changes(source: RecordSource, after: int, most: int, sees: Callable[[NodeState], bool] | None) -> ChangePage:
    """Return at most `most` changes after a position. `sees`: which nodes a customer may see, None for staff."""
    ledger = source.ledger_for_reading
    head = ledger.head()
    entries = ledger.entries(kinds=[] if sees is None else [TransitionEntry.kind], after=after, most=most)
    is_cut = len(entries) == most
    position = entries[-1].seq if is_cut else max([after, head, *(entry.seq for entry in entries[-1:])])
    if sees is None:
        changes = tuple(RecordedChange(one.seq, one.at, one.kind, one.node, one.body) for one in entries)
    else:
        visible = {state.node for state in source.read_node_states() if sees(state)}
        changes = tuple(_tell_customer(source, one) for one in entries if one.node in visible)
    return ChangePage(changes, position, more=is_cut)


def _tell_customer(source: RecordSource, entry: LedgerEntry) -> RecordedChange:
    to = TransitionEntry.read(entry).to_state
    serves = any(policy.is_in_service(to) for policy in source.fleet.policies.values())
    return RecordedChange(entry.seq, entry.at, entry.kind, entry.node, {"in_service": serves})
