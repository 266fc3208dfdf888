"""Divides the nodes of a new rollout into groups, and folds in those of a rollout that still runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from assay.decide.plan.service_exits import ServiceExit
from assay.decide.rollouts.rollout_history import Rollout, RolloutMember
from assay.decide.state.node_state import NodeState
from assay.model.entries.rollout_entries import EarlierOrder, RolloutGroup
from assay.model.specs.lifecycle_policy import LifecyclePolicy

NodesByBase = dict[str, dict[str, ServiceExit]]
"""The nodes that must leave service, by name, by the commit that they had before."""


@dataclass(frozen=True, slots=True)
class _FoldedNode:
    """What a node needs, None for nothing; the commit that it had before, and what becomes of an earlier order."""

    need: ServiceExit | None
    base: str
    earlier: EarlierOrder = ""


def group_rollout_nodes(
    policy: LifecyclePolicy,
    exits: NodesByBase,
    last: str,
    active: Rollout | None,
    states: Mapping[str, NodeState],
) -> tuple[RolloutGroup, ...]:
    """Return the groups of a rollout from the commit `last`.

    A node of the `active` rollout that has not left for it counts from the commit that it had before that rollout. One
    that has left goes on: with a new order if the newer commit changes more for it, else with the order that it has.
    """
    groups: dict[tuple[ServiceExit, str, EarlierOrder], list[str]] = defaultdict(list)
    members = {name: one for name, one in active.members.items() if not one.proof} if active else {}
    for name in dict.fromkeys([*exits[last], *members]):
        member, state = members.get(name), states.get(name)
        if member is None or state is None:
            folded = _FoldedNode(exits[last].get(name), last)
        else:
            folded = _fold_in(policy, exits, last, member, state)
        if folded.need is not None:
            groups[folded.need, folded.base, folded.earlier].append(name)
    return tuple(
        RolloutGroup(need.to, need.reason, base, tuple(names), earlier)
        for (need, base, earlier), names in groups.items()
    )


def _fold_in(
    policy: LifecyclePolicy, exits: NodesByBase, last: str, member: RolloutMember, state: NodeState
) -> _FoldedNode:
    """Return what a node of the earlier rollout needs now."""
    is_serving = policy.is_in_service(state.state)
    is_repaired = any(repair.seq > member.order_seq for repair in state.repairs)
    if not member.order or (is_serving and not is_repaired):
        return _FoldedNode(exits[member.base].get(member.node), member.base)
    need = exits[last].get(member.node)
    if need is None:
        return _FoldedNode(ServiceExit(member.to, member.reason), member.base, "kept")
    has_begun = state.move_request is None or state.move_request.to != need.to  # else it gets the newer one on arrival
    return _FoldedNode(need, last, "" if is_serving else "replaced" if has_begun else "kept")
