"""Gives every new machine of the inventory its first ledger entry. The serial number says which machine a node is.

A machine in the place of one that served, and that nobody had taken out first, has a fault that says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from assay.act.effects.effect_journal import EFFECT_KINDS, make_carried_entries
from assay.act.loop.context import ControllerContext
from assay.act.loop.projections import read_node_states
from assay.decide.faults.detection import count_sightings
from assay.decide.faults.identity import make_replacement_sighting
from assay.decide.state import decision_and_fault_entries
from assay.decide.state.node_entry import find_lapsed_import, find_start_state
from assay.decide.state.node_state import NodeState
from assay.model.entries.node_entries import NodeEnrolledEntry, NodeRenamedEntry
from assay.model.errors import AssayError
from assay.model.evidence import LATEST_TIME
from assay.model.ledger_entry import LedgerEntry
from assay.model.node import Node

PLACING_KINDS = (NodeEnrolledEntry.kind, NodeRenamedEntry.kind)
"""Entries that put a machine under a name."""


def enroll_nodes(context: ControllerContext) -> None:
    """Enrol the machines that the ledger does not know, by serial number, and rename those that have another name.

    A renamed machine takes its effects that have not ended along.
    Raises AssayError for a start state that the policy lacks.
    """
    states = read_node_states(context.ledger)
    machines = {state.serial: state for state in states.values() if state.serial}
    others = []
    for node in context.fleet.nodes.values():
        known = states.get(node.name)
        if known is None or (known.serial and node.serial and known.serial != node.serial):
            others.append(node)
    if others:
        used = {entry.node for entry in context.ledger.entries(kinds=[NodeEnrolledEntry.kind])}
        made = (_make_entries(context, node, machines.get(node.serial), node.name in used) for node in others)
        placed = [entry for entries in made for entry in entries]
        context.ledger.append(*placed, *_make_replacement_faults(context, states, placed))


def _make_entries(
    context: ControllerContext, node: Node, machine: NodeState | None, is_known_name: bool
) -> Iterator[LedgerEntry]:
    """Yield the entries of a node that is new, or that is a machine with another name so far.

    An import counts once for each name: another machine under a known name starts through proof.
    """
    now = context.clock.now()
    if machine is None or not node.serial:
        state = _read_start_state(context, node, is_known_name)
        lapsed = "" if is_known_name else find_lapsed_import(node, now)
        start, allowed = context.policy.states[state], context.fleet.profile_of(node.name).actions
        acts = bool(start.burn_in) and set(start.first_actions) <= set(allowed)
        yield decision_and_fault_entries.make_enrolled_entry(
            node.name, node.pool, state, now, node.serial, lapsed, acts=acts
        )
        return
    rename = decision_and_fault_entries.make_rename_entry(machine, node, now)
    yield rename
    if unsettled := {effect.id for effect in machine.unsettled_effects}:
        yield from make_carried_entries(context.ledger.entries(machine.node, EFFECT_KINDS), unsettled, rename)
    if machine.node not in context.fleet.nodes:
        yield decision_and_fault_entries.make_left_entry(machine, node.name, now)


def _make_replacement_faults(
    context: ControllerContext, states: Mapping[str, NodeState], placed: Iterable[LedgerEntry]
) -> Iterator[LedgerEntry]:
    """Yield the fault of each machine that comes in the place of one whose state leads to service, or serves."""
    for entry in placed:
        former = states.get(entry.node)
        if former and entry.kind in PLACING_KINDS and context.policy.leads_to_service(former.state):
            node, catalog = context.fleet.nodes[entry.node], context.fleet.fault_catalog
            sighting = make_replacement_sighting(former, node.serial, context.now)
            for fault in count_sightings(catalog, node, replace(former, faults=()), [sighting], 1):
                yield decision_and_fault_entries.make_fault_entry(fault, context.clock.now())


def _read_start_state(context: ControllerContext, node: Node, is_known_name: bool) -> str:
    state = find_start_state(context.policy, node, LATEST_TIME if is_known_name else context.clock.now())
    if state not in context.policy.states:
        raise AssayError(
            f"lifecycle_start is {state!r}, which is no state of the policy {context.policy.name}",
            where=node.name,
            fix=f"use one of {', '.join(context.policy.states)}",
        )
    return state
