"""Begins the state of a machine when it is enrolled, and carries it over to another name."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

from assay.decide.state.node_state_builder import NodeStateBuilder
from assay.model.entries.node_entries import NodeEnrolledEntry
from assay.model.ledger_entry import LedgerEntry
from assay.model.timestamps import format_time


def make_builder(entry: LedgerEntry) -> NodeStateBuilder:
    """Return the builder of a node that is enrolled."""
    at, enrolled = format_time(entry.at), NodeEnrolledEntry.read(entry)
    reason = f"first seen; the inventory starts it in {enrolled.state}{enrolled.reason and f': {enrolled.reason}'}"
    builder = NodeStateBuilder(entry.node, enrolled.pool, enrolled.state, at, entry.id, reason, at)
    builder.stay_seq, builder.serial, builder.named_by = entry.seq, enrolled.serial, entry.id
    return builder


def rename_machine(machine: NodeStateBuilder, node: str, pool: str, named_by: str) -> NodeStateBuilder:
    """Return a machine under another name. Whatever is asked for or under way goes on under the new name."""
    before, now = f"{machine.pool}/{machine.node}", f"{pool}/{node}"
    faults = {
        ident: replace(fault, subject=f"{now}{fault.subject.removeprefix(before)}")
        for ident, fault in machine.faults.items()
    }
    return replace(deepcopy(machine), node=node, pool=pool, named_by=named_by, faults=faults, built=None)
