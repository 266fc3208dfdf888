"""Gives every new node of the inventory its first ledger entry."""

from __future__ import annotations

from assay.controller.cache.node_state_and_outcome_cache import read_node_states
from assay.controller.context import ControllerContext
from assay.lifecycle import decision_and_fault_entries
from assay.lifecycle.node_entry import find_start_state
from assay.model.errors import AssayError
from assay.model.node import Node


def enroll_nodes(context: ControllerContext) -> None:
    """Enrol the nodes that the ledger does not know. Raises AssayError for a start state that the policy lacks."""
    known = read_node_states(context.ledger)
    new = [node for name, node in context.fleet.nodes.items() if name not in known]
    now = context.clock.now()
    context.ledger.append(
        *(
            decision_and_fault_entries.make_enrolled_entry(node.name, node.pool, _read_start_state(context, node), now)
            for node in new
        )
    )


def _read_start_state(context: ControllerContext, node: Node) -> str:
    state = find_start_state(context.policy, node, context.clock.now())
    if state not in context.policy.states:
        raise AssayError(
            f"lifecycle_start is {state!r}, which is no state of the policy {context.policy.name}",
            where=node.name,
            fix=f"use one of {', '.join(context.policy.states)}",
        )
    return state
