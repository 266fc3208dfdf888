"""Gives every node of the inventory the first line of its story."""

from __future__ import annotations

from assay.controller.cache.fleet_state import FleetStateCache
from assay.controller.context import ControllerContext
from assay.lifecycle import ledger_entries
from assay.model.errors import AssayError
from assay.model.fleet import Node


def enroll_nodes(memory: FleetStateCache) -> None:
    """Enrol the nodes that the ledger does not know. Raises Trouble for a start that the policy does not have."""
    desk, known = memory.context, memory.node_states()
    fresh = [node for name, node in desk.fleet.nodes.items() if name not in known]
    desk.ledger.append(
        *(
            ledger_entries.make_enrolled_entry(node.name, node.pool, _read_start_state(desk, node), desk.clock.now())
            for node in fresh
        )
    )


def _read_start_state(desk: ControllerContext, node: Node) -> str:
    state = str(node.variables.get("lifecycle_start", "onboard"))
    if state not in desk.policy.states:
        raise AssayError(
            f"lifecycle_start is {state!r}, which is no state of the policy {desk.policy.name}",
            where=node.name,
            fix=f"use one of {', '.join(desk.policy.states)}",
        )
    return state
