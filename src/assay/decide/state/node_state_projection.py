"""Projects ledger entries into the state of each node. Pure: the same entries give the same states."""

from __future__ import annotations

from collections.abc import Iterable

from assay.decide.state.asset_history import INVENTORY
from assay.decide.state.burn_in_record import BURN_IN_KINDS, advance_burn_in
from assay.decide.state.enrolled_machines import make_builder, rename_machine
from assay.decide.state.node_state import NodeState
from assay.decide.state.node_state_builder import ENTRY_HANDLERS, NodeStateBuilder
from assay.decide.trust.trust_record import TRUST_KINDS, advance_trust
from assay.model.entries.asset_entries import PartsSeenEntry
from assay.model.entries.decision_entries import DecisionEntry
from assay.model.entries.node_entries import NodeEnrolledEntry, NodeLeftEntry, NodeRenamedEntry
from assay.model.ledger_entry import LedgerEntry

MACHINE_KINDS = frozenset({NodeEnrolledEntry.kind, NodeRenamedEntry.kind, NodeLeftEntry.kind})


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
        self._machines: dict[str, NodeStateBuilder] = {}
        self._used_names: set[str] = set()

    def apply(self, entries: Iterable[LedgerEntry]) -> None:
        """Apply the next entries."""
        for entry in entries:
            self.seq = max(self.seq, entry.seq)
            if entry.kind in MACHINE_KINDS:
                self._change_machine(entry)
            elif entry.kind in BURN_IN_KINDS:
                self._change_burn_in(entry)
            elif builder := self._builders.get(entry.node):
                _change_state(builder, entry)

    def _change_burn_in(self, entry: LedgerEntry) -> None:
        if builder := self._builders.get(entry.node):
            builder.built = None
            builder.burn_in = advance_burn_in(builder.burn_in, entry, builder.stay_id)

    def _change_machine(self, entry: LedgerEntry) -> None:
        """Enrol a machine, or give it another name. Another serial number under a known name is another machine."""
        known = self._builders.get(entry.node)
        if entry.kind == NodeEnrolledEntry.kind:
            serial = NodeEnrolledEntry.read(entry).serial
            if known is None or (serial and known.serial != serial):
                machine = make_builder(entry)
                if entry.node in self._used_names:  # the newest outcomes of this name are of another machine
                    machine.apply_replacement(entry)
                self._name(entry.node, machine)
        elif entry.kind == NodeRenamedEntry.kind:
            renamed = NodeRenamedEntry.read(entry)
            if before := self._machines.get(renamed.serial):
                self._name(entry.node, rename_machine(before, entry.node, renamed.pool, entry.id))
        elif known:
            del self._builders[entry.node]

    def _name(self, node: str, machine: NodeStateBuilder) -> None:
        self._builders[node] = machine
        self._used_names.add(node)
        if machine.serial:
            self._machines[machine.serial] = machine

    def node_state(self, node: str) -> NodeState | None:
        """Return the state of a node, None if it was never enrolled."""
        builder = self._builders.get(node)
        return builder.build() if builder else None

    def node_states(self) -> dict[str, NodeState]:
        """Return the state of every node, by name."""
        return {name: builder.build() for name, builder in self._builders.items()}


def _change_state(builder: NodeStateBuilder, entry: LedgerEntry) -> None:
    if handle := ENTRY_HANDLERS.get(entry.kind):
        builder.built = None
        handle(builder, entry)
    if entry.kind == PartsSeenEntry.kind and (told := PartsSeenEntry.read(entry).node_serials):
        builder.built = None
        builder.told_serials |= {source: serial for source, serial in told.items() if source != INVENTORY}
    if entry.kind in TRUST_KINDS:
        builder.built = None
        known = builder.decisions[DecisionEntry.read(entry).decision] if entry.kind == DecisionEntry.kind else None
        builder.trust = advance_trust(builder.trust, entry, known)
