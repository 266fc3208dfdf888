"""Gives every node of the inventory the first line of its story."""

from __future__ import annotations

from assay.controller.desk import Desk
from assay.controller.known.memory import Memory
from assay.lifecycle import journal
from assay.model.errors import Trouble
from assay.model.fleet import Node


def enroll(memory: Memory) -> None:
    """Enrol the nodes that the ledger does not know. Raises Trouble for a start that the policy does not have."""
    desk, known = memory.desk, memory.stories()
    fresh = [node for name, node in desk.fleet.nodes.items() if name not in known]
    desk.ledger.append(
        *(journal.enrolled(node.name, node.pool, _start(desk, node), desk.clock.now()) for node in fresh)
    )


def _start(desk: Desk, node: Node) -> str:
    state = str(node.variables.get("lifecycle_start", "onboard"))
    if state not in desk.policy.states:
        raise Trouble(
            f"lifecycle_start is {state!r}, which is no state of the policy {desk.policy.name}",
            where=node.name,
            fix=f"use one of {', '.join(desk.policy.states)}",
        )
    return state
