"""Projects ledger entries into the state of each node. Pure: the same entries give the same states."""

from __future__ import annotations

from collections.abc import Iterable

from assay.lifecycle.node_state import NodeState
from assay.lifecycle.node_state_builder import ENTRY_HANDLERS, NodeStateBuilder, make_builder
from assay.model.entries.node_entries import NodeEnrolledEntry
from assay.model.ledger_entry import LedgerEntry


def project_node_states(entries: Iterable[LedgerEntry]) -> dict[str, NodeState]:
    """Return the state of every enrolled node, by name. Entries of other nodes have no effect."""
    projection = NodeStateProjection()
    projection.apply(entries)
    return projection.node_states()


class NodeStateProjection:
    """Node states that grow with the ledger. Apply each entry once, in order; `seq` is the last one applied."""

    def __init__(self) -> None:
        self.seq = 0
        self._builders: dict[str, NodeStateBuilder] = {}

    def apply(self, entries: Iterable[LedgerEntry]) -> None:
        """Apply the next entries."""
        for entry in entries:
            self.seq = max(self.seq, entry.seq)
            if entry.kind == NodeEnrolledEntry.kind:
                if entry.node not in self._builders:
                    self._builders[entry.node] = make_builder(entry)
            elif (builder := self._builders.get(entry.node)) and (handle := ENTRY_HANDLERS.get(entry.kind)):
                builder.built = None
                handle(builder, entry)

    def node_state(self, node: str) -> NodeState | None:
        """Return the state of a node, None if it was never enrolled."""
        builder = self._builders.get(node)
        return builder.build() if builder else None

    def node_states(self) -> dict[str, NodeState]:
        """Return the state of every node, by name."""
        return {name: builder.build() for name, builder in self._builders.items()}
