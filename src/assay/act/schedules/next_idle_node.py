"""Which idle nodes of a pool are tested, which first, and why the others are left alone.

A node with an open warning of trends comes first: the only thing that a warning decides. The others keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.act.loop.context import ControllerContext
from assay.adapters.scheduler import VERIFY_UNDRAIN, SchedulerNodeStatus, format_jobs
from assay.decide.state.node_state import NodeState
from assay.decide.trends.warning_record import TREND_ENTRY_KINDS, read_warning_history
from assay.model.cordon_ownership import is_our_reason
from assay.model.decision import LOAD
from assay.model.node import Node


def order_idle_nodes(context: ControllerContext, nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes in the order in which they are tested."""
    urgency: dict[str, float] = {}
    for warning in read_warning_history(context.ledger.entries(kinds=TREND_ENTRY_KINDS)).open:
        if warning.content.stage == "record":
            chance = 0.5 if warning.content.p is None else warning.content.p  # that the warning is right
            urgency[warning.node] = max(urgency.get(warning.node, 0.0), chance)
    return sorted(nodes, key=lambda node: -urgency.get(node.name, 0.0))


OUTCOME_WORDS = {
    "passed": "passed",
    "failed": "failed",
    "unjudged": "could not be judged",
    "yielded": "made room",
    "busy": "in use",
    "unknown": "could not be loaded",
    "skipped": "left out",
}
"""The outcomes for a node, in the order in which the summary lists them."""


@dataclass(frozen=True, slots=True)
class IdleNodeResult:
    """How a verification ended for one node: a key of OUTCOME_WORDS, and why.

    `gone_ms`: how many milliseconds at most a customer waited until its load was gone, if one came.
    """

    node: str
    outcome: str
    reason: str = ""
    gone_ms: int | None = None


def is_in_service(context: ControllerContext, node_state: NodeState | None) -> bool:
    """Say whether a node is in a state that serves jobs."""
    states = context.policy.states
    return node_state is not None and node_state.state in states and states[node_state.state].in_service


def find_exclusion(
    context: ControllerContext, node_state: NodeState, status: SchedulerNodeStatus | None
) -> IdleNodeResult | None:
    """Return why a node is not verified now, None where it is."""
    name = node_state.node
    if node_state.hold:
        return IdleNodeResult(name, "skipped", f"held by {node_state.hold.who}: {node_state.hold.reason}")
    if context.fleet.is_watched(name, LOAD):
        return IdleNodeResult(name, "skipped", f"assay only watches: {context.fleet.find_trust(name, [LOAD])}")
    if not context.fleet.profile_of(name).acts_on_faults:
        return IdleNodeResult(name, "skipped", f"profile {context.fleet.nodes[name].profile}: faults are not acted on")
    if node_state.burn_in and node_state.burn_in.is_running:
        return IdleNodeResult(name, "skipped", node_state.burn_in.describe())
    if node_state.pending or node_state.unsettled_effects:
        return IdleNodeResult(name, "skipped", "a decision or an effect about it is pending")
    if status is None:
        return IdleNodeResult(name, "unknown", "its scheduler cannot tell whether it is in use")
    if status.jobs:
        return IdleNodeResult(name, "busy", format_jobs(status.jobs))
    if status.cordon and not (VERIFY_UNDRAIN in status.cordon or is_our_reason(status.cordon)):
        return IdleNodeResult(name, "skipped", f"cordoned: {status.cordon}")
    return None
